"""Policies as others get them: a folder with weights and data, and no code."""
