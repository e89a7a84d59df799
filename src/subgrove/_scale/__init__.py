"""Data that do not fit in memory: readers of chunks, and engines that process them."""
