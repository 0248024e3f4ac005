"""Baseline learners under one protocol."""
