"""Run every benchmark of this folder and print one table of ratios; exit with 1 if a bar is missed."""

import importlib
import sys
from pathlib import Path

from report_rows import Row, print_rows

#: What is no benchmark, or one of bounds or scores instead of times.
_NO_TIMES = (
    *("run_all", "report_rows", "reference_mirror_descent", "certificates", "experts", "train_experts"),
    *("continuous", "changed_physics", "algorithm_1_continuous"),
)


def main() -> int:
    """Import each ``benchmarks/<name>.py`` and call its ``main``; names on the command line choose some of them."""
    folder = Path(__file__).parent
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(f"{__doc__}\nusage: run_all.py [NAME ...], a name being that of a file here, as in planning")
        return 0
    names = sys.argv[1:] or sorted(p.stem for p in folder.glob("*.py") if p.stem not in _NO_TIMES)
    sys.argv = sys.argv[:1]  # the benchmarks read their own flags from the command line
    rows: list[Row] = []
    for name in names:
        print(f"… {name}", file=sys.stderr, flush=True)
        rows.extend(importlib.import_module(name).main())
    print_rows(rows)
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
