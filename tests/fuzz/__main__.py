"""`poe fuzz`: fuzz all kinds, or those that are named, and print a row for each; exit status 1 if anything is found,
or if a kind had no input at all.

    python -m tests.fuzz --seconds 3600 --kind programs --kind traffic --seed 7

A finding is printed with the smallest input that does it. Once it is mended, add it to tests/fuzz/findings/.
"""

import argparse
import sys

from tests.fuzz.engine import Harm, Report, searched
from tests.fuzz.kinds import KINDS


def _row(report: Report) -> str:
    counts = "".join(f"{report.count(harm):>12}" for harm in Harm)
    return f"{report.kind:<12}{report.inputs:>12,}{counts}"


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="poe fuzz", description="Fuzz in process, with seeds; findings are shrunk.")
    parser.add_argument("--seconds", type=float, default=120, help="for how long altogether (default: 120)")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="where the inputs start from (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="kinds at a time (default: 2)")
    given = parser.parse_args()
    kinds = [KINDS[name] for name in given.kind or KINDS]
    print(f"{'kind':<12}{'inputs':>12}" + "".join(f"{harm:>12}" for harm in Harm))
    total, idle = Report("all"), 0
    for report in searched(kinds, given.seed, given.seconds, min(given.jobs, len(kinds))):
        print(_row(report), flush=True)
        for what, found in report.found.items():
            print(f"    {what}\n    {found.input[:4000]}", flush=True)
        total.inputs += report.inputs
        idle += not report.inputs
        total.found |= {f"{report.kind}: {what}": found for what, found in report.found.items()}
    print(_row(total))
    return 1 if total.found or idle else 0


if __name__ == "__main__":
    sys.exit(main())
