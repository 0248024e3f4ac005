"""Run every benchmark of times in this folder and print one table of ratios; exit with 1 if a bar is missed."""

import importlib
import sys

from report_rows import Row, print_rows

#: The benchmarks of times; the others are of bounds or scores, or make files.
TIMES = ("collection", "exact", "generative_model", "mirror_descent", "planning", "vector_env")


def main() -> int:
    """Import each ``benchmarks/<name>.py`` and call its ``main``; names on the command line choose some of them."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(f"{__doc__}\nusage: run_all.py [NAME ...] of {', '.join(TIMES)}")
        return 0
    names = sys.argv[1:] or TIMES
    sys.argv = sys.argv[:1]  # the benchmarks read their own flags from the command line
    rows: list[Row] = []
    for name in names:
        print(f"… {name}", file=sys.stderr, flush=True)
        rows.extend(importlib.import_module(name).main())
    print_rows(rows)
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
