"""Files that are complete or not there, with one writer at a time, and what their readers check."""
