"""Compares what the program says with what a second, independent reading says: `python tests/independent --help`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tui"))  # where hand-made histories come from

from compared_with import COMPARISONS


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/independent", description=__doc__)
    parser.add_argument("--what", choices=[*COMPARISONS, "all"], default="all")
    parser.add_argument("--count", type=int, help="cases; without it as many as were once compared")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    differing = 0
    for name in COMPARISONS if given.what == "all" else [given.what]:
        one = COMPARISONS[name]
        began = time.process_time()
        tally = one.compare(given.count or one.count, given.seed)
        spent = time.process_time() - began
        print(f"{name}: {tally.cases:,} cases, {tally.differing:,} differ ({spent:.1f} s, seed {given.seed})")
        for line in tally.differences:
            print(f"  {line}")
        differing += tally.differing
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
