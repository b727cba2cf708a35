"""Finds settings with many frames per second, and saves them: `train.tune`.

- space.py: which settings are tried, with which candidates
- search.py: which combinations of them
- trial.py: one combination, measured
- cache.py: the results of earlier searches
- tuning.py: all of it together
"""
