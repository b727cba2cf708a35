"""Networks, and what is computed with them: losses, returns, optimizers, random numbers."""
