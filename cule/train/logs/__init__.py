"""What a training writes: log, rows of results, plots."""
