"""Shared by the examples: environments by name, frames stored once, rows of results."""
