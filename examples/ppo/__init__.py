"""PPO on thousands of environments."""
