"""What the examples share: environments by name, frames stored once, rows of results."""
