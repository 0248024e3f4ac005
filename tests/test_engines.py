"""Engines survive items that fail, hang or die."""

import threading

import pytest
from engine_cases import prepare, square_or_misbehave
from joblib.externals.loky import ProcessPoolExecutor

from lfd_gym.engines import ProcessEngine


def test_every_item_ends_once_with_its_own_outcome():
    items = [1, "fail", 2, "hang", 3, "die", 4, 5, 6]
    outcomes = list(ProcessEngine(2).run(square_or_misbehave, items, time_limit=2.0))
    assert len(outcomes) == len(items)
    by_item = dict(outcomes)
    assert {item: by_item[item].value for item in (1, 2, 3, 4, 5, 6)} == {n: n * n for n in range(1, 7)}
    assert all(by_item[n].error == "" for n in range(1, 7))
    assert by_item["fail"].error.startswith("ValueError: no good")
    assert "time limit of 2 s" in by_item["hang"].error
    assert "worker process died" in by_item["die"].error


def test_preparing_is_not_on_the_clock():
    items = [1, "slow to prepare", 2, "hang", "cannot be prepared"]
    by_item = dict(ProcessEngine(2).run(square_or_misbehave, items, 1.0, prepare))
    assert {item: by_item[item].value for item in (1, 2)} == {1: 1, 2: 4}
    assert by_item["slow to prepare"].value == "done"
    assert "time limit of 1 s" in by_item["hang"].error
    assert "no such thing" in by_item["cannot be prepared"].error


def test_no_workers_is_an_error():
    with pytest.raises(ValueError, match="n_workers must be at least 1, got 0"):
        ProcessEngine(0)


def test_a_pool_that_is_broken_off_ends_quietly(monkeypatch):
    raised = []
    shutdown = ProcessPoolExecutor.shutdown

    def stumbling(self, *args, **kwargs):  # as the thread of a pool does whose work is taken from it
        thread = threading.Thread(target=lambda: {}[5])
        thread.start()
        thread.join()
        shutdown(self, *args, **kwargs)

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", stumbling)
    monkeypatch.setattr(threading, "excepthook", raised.append)
    runs = ProcessEngine(1).run(square_or_misbehave, [1, 2, 3], time_limit=20.0)
    next(runs)
    with pytest.raises(KeyboardInterrupt):
        runs.throw(KeyboardInterrupt())
    assert raised == []
    assert threading.excepthook == raised.append
