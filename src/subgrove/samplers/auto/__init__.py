"""Select a sampler for each feature by its held-out score."""
