"""What the experiments `figures` and `bike` are made of: numbers, and pictures of them."""
