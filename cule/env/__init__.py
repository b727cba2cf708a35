"""The parts of `cule.AtariEnv`."""
