"""Evaluations on ale-py, which no training sees: the scores that are reported."""
