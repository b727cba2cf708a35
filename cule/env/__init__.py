"""What `cule.AtariEnv` is made of."""
