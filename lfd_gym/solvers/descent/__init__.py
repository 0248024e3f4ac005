"""Algorithm 1: stochastic mirror descent from draws of a generative model."""
