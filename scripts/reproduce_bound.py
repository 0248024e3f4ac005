"""Draw the paper's bounds beside the truth; the same as ``lfd-gym reproduce bound``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "bound", *sys.argv[1:]]))
