"""Work for the engines' tests: it must be importable by worker processes."""

import os
import signal
import time


def square_or_misbehave(item):
    """Return the square, or do what a bad item says."""
    if item == "fail":
        raise ValueError("no good")
    if item == "hang":
        while True:
            time.sleep(0.01)
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item
