"""Finds settings with many frames per second, and keeps them: `train.tune`.

- space.py: which settings are tried, with which candidates
- search.py: which combinations of them
- trial.py: one combination, measured
- kept.py: what was found before
- tuning.py: all of it together
"""
