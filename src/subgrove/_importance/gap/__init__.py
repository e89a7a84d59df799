"""Why marginal and conditional importance of a feature differ."""
