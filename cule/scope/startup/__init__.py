"""A folder for PYTHONPATH: Python imports its sitecustomize.py when a process starts."""
