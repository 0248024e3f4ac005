"""Grids over spaces of real vectors: interpolation, simulators as finite models, and the policies that come of it."""
