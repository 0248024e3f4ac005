"""Judging policies: evaluation, certificates, bounds, statistics."""
