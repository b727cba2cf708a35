"""Processes that train together, and how they share GPUs."""
