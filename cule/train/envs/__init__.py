"""The envs that an algorithm trains on."""
