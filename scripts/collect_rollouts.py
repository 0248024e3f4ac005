"""Record demonstrations of an expert; the same as ``lfd-gym collect``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["collect", *sys.argv[1:]]))
