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
    if item == "slow to prepare":
        return "done"
    return item * item


def prepare(item):
    """Take longer for some items than their work may."""
    if item == "slow to prepare":
        time.sleep(2.5)
    if item == "cannot be prepared":
        raise ValueError("no such thing")
