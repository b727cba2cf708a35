"""Other libraries' own test suites, fetched and run with cule in the place of theirs: `python -m
tests.peers`."""
