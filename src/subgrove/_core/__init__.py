"""What every other part uses: validation, randomness, parallel work, moments and quantiles."""
