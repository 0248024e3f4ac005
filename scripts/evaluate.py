"""Evaluate a run folder or a policy; the same as ``lfd-gym evaluate``."""

import sys

from lfd_gym.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
