"""Kept for ``lfd_gym/__init__.py`` until it imports `lfd_gym.solvers.highs`."""

from lfd_gym.solvers.highs import LinearProgramError as LinearProgramError
