"""Training programs that use cule.

Run them from the repository's root: python -m examples.a2c_vtrace.train --help.
"""
