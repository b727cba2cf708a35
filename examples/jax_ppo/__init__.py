"""PPO with JAX, the whole training in one compiled program."""
