"""Wrong calls by the million: what they end in, counted. ``python tests/fuzz/fuzz_campaign.py --calls 1000000``.

Call k of a seed is always the same, and runs in a worker that its parent watches: a call that kills the process or
takes too long is recorded, and a new worker goes on with the next. Interrupted at any time, the same command goes on
where it stopped.
"""

import argparse
import copy
import json
import mmap
import os
import re
import resource
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from functools import cache
from pathlib import Path
from types import MappingProxyType

import gymnasium as gym
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_calls import AMOUNTS, Call, calls_and_objects, holds_nan, quietly
from fuzz_values import wrong_value

#: Outcomes that are as promised.
GOOD = ("returned", "refused by name", "refused otherwise", "no memory")
_REFUSALS = (ValueError, TypeError, OSError, ImportError, RuntimeError, gym.error.Error)
_MEMORY = 6 * 2**30
_CHUNK = 5000


def fresh(value):
    """A copy of what calls could change: arrays, lists and generators; other objects are shared."""
    if isinstance(value, np.ndarray) or hasattr(value, "tocsr"):
        return value.copy()
    if isinstance(value, (np.random.Generator, list, dict)):
        return copy.deepcopy(value)
    return dict(value) if isinstance(value, MappingProxyType) else value


def drawn(k, seed, calls, pool):
    """Return call ``k``: which one, and its arguments, one or two of them replaced."""
    rng = np.random.default_rng([seed, k])
    call = calls[rng.integers(len(calls))]
    while call.one_of > 1 and rng.integers(call.one_of):
        call = calls[rng.integers(len(calls))]
    arguments = {name: fresh(value) for name, value in call.arguments.items()}
    changed = rng.choice(sorted(arguments), size=min(len(arguments), 1 + (rng.random() < 0.1)), replace=False)
    for name in changed.tolist():
        arguments[name] = wrong_value(arguments[name], pool, rng, name in AMOUNTS)
    return call, arguments, changed.tolist()


def outcome(call: Call, arguments, changed):
    """Make the call and return a word for what it ended in, and what was said."""
    try:
        result = call.function(**arguments)
    except MemoryError:
        return "no memory", ""
    except Exception as error:
        by_name = _names_an_argument(call, str(error))
        if call.name.startswith("testing.") and type(error) is AssertionError:  # what those are for
            return "refused by name", ""
        if isinstance(error, _REFUSALS) or (by_name and isinstance(error, IndexError)):
            return "refused by name" if by_name else "refused otherwise", f"{type(error).__name__}: {error}"
        where = traceback.extract_tb(error.__traceback__)[-1]  # what must not happen
        return f"raised {type(error).__name__}", f"{error} ({Path(where.filename).name}:{where.lineno})"
    return ("returned NaN" if holds_nan(result) and not call.means_nan else "returned"), ""


def _names_an_argument(call: Call, text: str):
    """Whether ``text`` names a parameter of the call; in the singular or the plural: a policy of the policies.

    A file of a folder may be named by the folder.
    """
    return bool(_names(call.name, (*call.arguments, str(call.arguments.get("name", "")))).search(text))


@cache
def _names(call: str, arguments: tuple[str, ...]):
    folders = [name.rpartition("/")[0] for name in arguments]
    singular = [re.sub(r"ies$", "y", name).removesuffix("s") for name in arguments]
    plural = [f"{name}s" for name in arguments if name]
    known = [*arguments, *singular, *plural, *folders]
    return re.compile(r"(?<!\w)(" + "|".join(re.escape(name) for name in known if name) + r")(?!\w)")


def work(first, last, which, seed, calls, pool, report, mark):
    """Make calls ``first`` to ``last`` of ``which``: a JSON line for each that is not as promised, and their counts."""
    counts: Counter = Counter()
    for position in range(first, last):
        mark[:16] = struct.pack("<qd", position, time.monotonic())
        k = which[position]
        call, arguments, changed = drawn(k, seed, calls, pool)
        word, said = outcome(call, arguments, changed)
        counts[f"{call.name}: {word}"] += 1
        if word not in GOOD or word == "refused otherwise":
            shown = {name: f"{arguments[name]!r:.200}" for name in changed if _can_be_shown(arguments[name])}
            row = {"k": k, "call": call.name, "changed": shown or changed, "outcome": word, "said": said[:300]}
            report.write(json.dumps(row) + "\n")
    report.write(json.dumps({"counts": counts}) + "\n")
    report.flush()


def _can_be_shown(value):
    try:
        return bool(repr(value))
    except Exception:
        return False


def campaign(n_calls, seed=0, seconds_per_call=60.0, state=None, echo=None, start=0, which=None):
    """Run calls ``start`` to ``n_calls`` and return their state: how far it came, counts, and what was not as promised.

    Parameters
    ----------
    n_calls
        How many calls there are in all.
    seed
        Of all of them.
    seconds_per_call
        What takes longer hangs.
    state
        Of an earlier run, to go on from.
    echo
        Called with the state after every chunk.
    start
        The first call, without a state.
    which
        Their numbers, if they are not simply all.
    """
    which = range(n_calls) if which is None else which
    quietly()
    calls, pool = calls_and_objects()
    for call in calls:  # compile everything before workers are forked
        call.function(**{name: fresh(value) for name, value in call.arguments.items()})
    state = state or {"seed": seed, "next": start, "counts": {}, "found": []}
    mark = mmap.mmap(-1, 16)
    while state["next"] < n_calls:
        last = min(state["next"] + _CHUNK, n_calls)
        _chunk(state, last, which, calls, pool, mark, seconds_per_call)
        if echo is not None:
            echo(state)
    return state


def _chunk(state, last, which, calls, pool, mark, limit):
    """Make calls up to ``last`` in a forked worker; if it ends early, what it was at is recorded."""
    reading, writing = os.pipe()
    mark[:16] = struct.pack("<qd", state["next"], time.monotonic())
    child = os.fork()
    if child == 0:
        _be_worker(state, last, which, calls, pool, mark, reading, writing)
    os.close(writing)
    text, ended = _watch(child, reading, mark, limit)
    at, _ = struct.unpack("<qd", mark[:16])
    counts = Counter(state["counts"])
    n_before = sum(counts.values())
    for line in text.splitlines():
        row = json.loads(line)
        if "counts" in row:
            counts.update(row["counts"])
        else:
            state["found"].append(row)
    if not ended:
        state["next"] = last
    else:  # its counts are lost with it: run what was before the culprit again, which went well
        call, _, changed = drawn(which[at], state["seed"], calls, pool)
        lost = {which[position] for position in range(state["next"], last)}
        state["found"] = [row for row in state["found"] if row["k"] not in lost]
        counts[f"{call.name}: {ended}"] += 1
        state["found"].append({"k": which[at], "call": call.name, "changed": changed, "outcome": ended, "said": ""})
        state["counts"] = dict(counts)
        before = state["next"]
        if at > before:
            _chunk(state, at, which, calls, pool, mark, limit)
        state["next"] = at + 1
        return
    state["counts"] = dict(counts)
    assert sum(counts.values()) > n_before or state["next"] == last


def _be_worker(state, last, which, calls, pool, mark, reading, writing):
    os.close(reading)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    status = 1
    try:
        with os.fdopen(writing, "w") as report:
            work(state["next"], last, which, state["seed"], calls, pool, report, mark)
        status = 0
    finally:
        os._exit(status)


def _watch(child, reading, mark, limit):
    """Return what the worker wrote, and how it ended if not well."""
    os.set_blocking(reading, False)
    parts, hung = [], False
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        try:
            while part := os.read(reading, 1 << 16):
                parts.append(part)
        except BlockingIOError:
            pass
        if done:
            break
        _, since = struct.unpack("<qd", mark[:16])
        if time.monotonic() - since > limit:
            hung = True
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    os.close(reading)
    text = b"".join(parts).decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return text, ""
    return "", "hung" if hung else f"ended the process ({code})"


def summary(state):
    """The figures of a campaign: one line per outcome, and the share of refusals that name an argument."""
    words: Counter = Counter()
    for name, count in state["counts"].items():
        words[name.partition(": ")[2]] += count
    refused = words["refused by name"] + words["refused otherwise"]
    share = words["refused by name"] / max(refused, 1)
    lines = [f"{count:>9,} {word}" for word, count in words.most_common()]
    return "\n".join(
        [f"{sum(words.values()):,} calls, seed {state['seed']}", *lines, f"{share:.2%} of refusals by name"]
    )


def again(state, seconds_per_call=60.0):
    """Make the calls again that were not as promised, on the tree as it is now; the state with how they end."""
    rows = sorted(state["found"], key=lambda row: row["k"])
    made = campaign(len(rows), state["seed"], seconds_per_call, which=[row["k"] for row in rows])
    counts = Counter(state["counts"])
    counts.subtract(f"{row['call']}: {row['outcome']}" for row in rows)
    counts.update(made["counts"])
    return {**state, "counts": {name: count for name, count in counts.items() if count}, "found": made["found"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz/calls.json"))
    parser.add_argument("--again", action="store_true", help="make those again that did not end as promised")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    state = json.loads(options.out.read_text()) if options.out.exists() else None
    if state is not None and state["seed"] != options.seed:
        parser.error(f"{options.out} holds a campaign of seed {state['seed']}")

    def keep(state):
        unfinished = options.out.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(state))
        unfinished.replace(options.out)

    if options.again:
        state = again(state)
        keep(state)
    else:
        state = campaign(options.calls, options.seed, state=state, echo=keep)
    print(summary(state))
    return any(row["outcome"] not in GOOD for row in state["found"])


if __name__ == "__main__":
    sys.exit(main())
