"""Learn from demonstrations and write a run folder; the same as ``lfd-gym train``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
