"""Draw how the residual of Algorithm 1 falls with its iterations; the same as ``lfd-gym reproduce residual``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "residual", *sys.argv[1:]]))
