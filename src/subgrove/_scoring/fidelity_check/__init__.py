"""Check, feature by feature, whether resampled rows are realistic."""
