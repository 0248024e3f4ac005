"""Draw what an iteration of Algorithm 1 costs as the state space grows; the same as ``lfd-gym reproduce growth``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "growth", *sys.argv[1:]]))
