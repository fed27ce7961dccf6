"""AlphaZero-class search on an accelerator, in JAX."""
