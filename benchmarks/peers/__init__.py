"""PPO by cule.train and by other libraries, each by its own code, on the same envs and network."""
