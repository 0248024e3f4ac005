"""Record demonstrations of an expert: the same as ``lfd-gym collect``."""

import sys

import gymnasium as gym
import tyro

from lfd_gym.cli_demonstrations import Collect

if __name__ == "__main__":
    try:
        tyro.cli(Collect, description=__doc__).run()
    except (ValueError, OSError, ImportError, gym.error.Error) as error:
        sys.exit(f"collect_rollouts: {error}")
