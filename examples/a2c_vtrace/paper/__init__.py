"""The tables and figures of the CuLE paper, measured again: one command each.

A report (reports.py) is a list of cases (cases.py). A case says what its rows of results have, and
how they are measured (measure.py). What is shown (tables.py, plots.py) comes from rows only, and
says which file and commit they are from (rows.py).
"""
