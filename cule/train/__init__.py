"""Declares, plans and runs training: see docs/training.md."""
