"""The case studies of RL-Scope (Gleeson et al., 2021), with the programs of today."""
