"""Importance: the increase of the loss when a feature is resampled, or left out."""
