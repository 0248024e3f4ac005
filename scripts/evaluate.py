"""Evaluate the policy of a run folder, or a saved policy: the same as ``lfd-gym evaluate``."""

import sys

import gymnasium as gym
import tyro

from lfd_gym.cli_training import Evaluate

if __name__ == "__main__":
    try:
        tyro.cli(Evaluate, description=__doc__).run()
    except (ValueError, OSError, ImportError, gym.error.Error) as error:
        sys.exit(f"evaluate: {error}")
