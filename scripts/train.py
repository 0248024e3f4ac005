"""Learn from demonstrations and write a run folder: the same as ``lfd-gym train``."""

import sys

import gymnasium as gym
import tyro

from lfd_gym.cli_training import Train

if __name__ == "__main__":
    try:
        tyro.cli(Train, description=__doc__).run()
    except (ValueError, OSError, ImportError, gym.error.Error) as error:
        sys.exit(f"train: {error}")
