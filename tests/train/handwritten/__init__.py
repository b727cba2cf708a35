"""The training programs that cule.train replaced, without their command lines: its oracles."""
