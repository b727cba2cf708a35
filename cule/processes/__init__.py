"""Forks and signals of a process."""
