"""Reproduce the figure of the paper; the same as ``lfd-gym reproduce figure``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "figure", *sys.argv[1:]]))
