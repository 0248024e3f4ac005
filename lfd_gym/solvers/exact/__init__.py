"""Exact apprenticeship with a known model: linear programs, cutting planes, what the weights explain."""
