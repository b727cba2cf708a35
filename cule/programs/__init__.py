"""What programs have in common: command lines, rows of results, figures."""
