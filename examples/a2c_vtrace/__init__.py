"""A2C with V-trace on thousands of environments."""
