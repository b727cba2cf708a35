"""An algorithm becomes a program of operations over time."""
