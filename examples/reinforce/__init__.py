"""REINFORCE: see reinforce.py."""
