"""The files that a training writes: log, rows of results, plots."""
