"""What benchmark tests share: an engine without workers, rows without what two runs of a cell may differ in."""

import json

from lfd_gym.engines import Outcome


class Here:
    """Runs everything in this process, one after the other."""

    def run(self, function, items, time_limit, prepare=None):
        for item in items:
            yield item, Outcome(function(item))


def deterministic_part(rows):
    """Leave out times, memory, and the revision, which may be committed between two runs."""
    plain = json.loads(json.dumps(rows))
    for row in plain:
        if row["status"] == "ok":
            row["provenance"].pop("revision")
            for key in ("wall_seconds", "cpu_seconds", "peak_memory_mb"):
                row["evaluation"]["resources"].pop(key)
    return plain
