"""Rainbow, and BTR's parts: see rainbow.py and btr.py."""
