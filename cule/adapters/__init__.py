"""cule's envs as other libraries want them: stable-baselines3, TorchRL, EnvPool (and CleanRL), JAX.

Each module needs its library, and nothing else in cule does: stable-baselines3, torchrl, jax.
"""
