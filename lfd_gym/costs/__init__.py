"""Costs, and the sets their weights live in."""
