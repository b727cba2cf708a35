"""Code that programs share: command lines, rows of results, figures."""
