"""The short form of the campaign of wrong calls: `make test-fuzz` is the long one, docs/reliability.md its figures."""

from collections import Counter

from fuzz_calls import calls_and_objects, holds_nan
from fuzz_campaign import GOOD, campaign, drawn, fresh, outcome

N_CALLS = 2500


def test_right_calls_are_right():
    for call in calls_and_objects()[0]:
        result = call.function(**{name: fresh(value) for name, value in call.arguments.items()})
        assert not holds_nan(result), call.name


def test_wrong_calls_are_refused_by_the_names_of_their_arguments():
    state = campaign(N_CALLS)
    assert [row for row in state["found"] if row["outcome"] not in GOOD] == []
    words = Counter()
    for name, count in state["counts"].items():
        words[name.rpartition(": ")[2]] += count
    assert words.total() == N_CALLS
    assert words["refused by name"] > N_CALLS / 2
    assert words["refused otherwise"] <= 0.02 * words["refused by name"]  # 1 % of a million; a few thousand scatter


def test_a_call_is_the_same_whenever_it_is_drawn():
    calls, pool = calls_and_objects()
    for k in range(50):
        first, second = (drawn(k, 7, calls, pool) for _ in range(2))
        assert first[0] is second[0]
        assert first[2] == second[2]
        assert outcome(first[0], first[1], first[2])[0] == outcome(second[0], second[1], second[2])[0]


def test_calls_that_end_or_stop_the_process_are_recorded(monkeypatch):
    """The campaign itself: a worker that dies or hangs is noticed, and everything else is still counted once."""
    import os
    import time

    import fuzz_campaign
    from fuzz_calls import Call

    def misbehave(number):
        if number == -1:
            os._exit(3)
        if number == 0:
            time.sleep(100)
        if number == 1:
            raise KeyError("no name")
        if number == 2:
            return float("nan")
        return None

    call = Call("misbehave", misbehave, {"number": 5})
    numbers = {10: -1, 20: 0, 30: 1, 40: 2}
    monkeypatch.setattr(fuzz_campaign, "calls_and_objects", lambda: ([call], []))
    monkeypatch.setattr(fuzz_campaign, "drawn", lambda k, *rest: (call, {"number": numbers.get(k, 5)}, ["number"]))
    state = campaign(60, seconds_per_call=2.0)
    assert state["next"] == 60
    assert state["counts"] == {
        "misbehave: returned": 56,
        "misbehave: ended the process (3)": 1,
        "misbehave: hung": 1,
        "misbehave: raised KeyError": 1,
        "misbehave: returned NaN": 1,
    }
    assert {row["k"]: row["outcome"].split()[0] for row in state["found"]} == {
        10: "ended",
        20: "hung",
        30: "raised",
        40: "returned",
    }
