"""Finite MDPs, planning in them, and models that can only be drawn from."""
