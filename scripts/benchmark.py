"""Run a comparative benchmark; the same as ``lfd-gym benchmark``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["benchmark", *sys.argv[1:]]))
