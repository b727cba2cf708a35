"""cule's envs with the interfaces of stable-baselines3, TorchRL, EnvPool (for CleanRL) and JAX.

Only these modules need those libraries: stable-baselines3, torchrl, jax.
"""
