"""What benchmark tests share: rows without what two runs of the same cell may differ in."""

import json


def deterministic_part(rows):
    """Leave out times, memory, and the revision, which may be committed between two runs."""
    plain = json.loads(json.dumps(rows))
    for row in plain:
        if row["status"] == "ok":
            row["provenance"].pop("revision")
            for key in ("wall_seconds", "cpu_seconds", "peak_memory_mb"):
                row["evaluation"]["resources"].pop(key)
    return plain
