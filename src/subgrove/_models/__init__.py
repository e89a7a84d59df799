"""The user's model: the one place that calls it, on the host or on a device."""
