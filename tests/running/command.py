"""`poe prove --run [NAME...]`: real programs and libraries, patched, do their own work, and a table says how they did.

    python -m tests.prove --run [--way NAME]... [--probe SPEC] [--bisect] [NAME...]
    python -m tests.prove --run --boundaries [NAME...]

Each program (all that programs.toml has unless some are named; those of other machines run under qemu-user) is made
standalone in each way, and must give the output, the exit status and the files that it gives without patches.
`--bisect` finds the sites whose patches make the first case differ. `--boundaries` runs nothing: objdump must see an
instruction begin at every site of all files. Exit status 1 if one fails.
"""

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.running.judging import Judged, judge
from tests.running.patching import WAYS, Way
from tests.running.program import programs
from tests.running.proving import Outcome, prove_program

PROGRAMS: Final = programs()
_SHOWN: Final = 3  # of the cases that differ
_JUDGED: Final = ("file", "machine", "sites", "excused", "outcome")
_COLUMNS: Final = ("program", "way", "cases", "sites", "hit", "refused", "differ", "seconds", "outcome")


def main(words: Sequence[str]) -> int:
    """Prove the programs, one line each as it is done, then the table and why sites were refused."""
    options = _parser().parse_args(words)
    if unknown := [name for name in options.names if name not in PROGRAMS]:
        sys.exit(f"no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    names = options.names or [*PROGRAMS]
    if options.boundaries:
        return _judge(names)
    ways = [way for way in WAYS if not options.way or way.name in options.way]
    if options.probe:
        ways = [Way(options.probe, options.probe, options.action)]
    outcomes = list[Outcome]()
    for name in names:
        for outcome in prove_program(PROGRAMS[name], ways, is_bisected=options.bisect):
            outcomes.append(outcome)
            _tell(outcome)
    _print_table([_COLUMNS, *(_row(outcome) for outcome in outcomes)])
    _print_reasons([outcome.refused for outcome in outcomes])
    return 0 if all(outcome.is_same for outcome in outcomes) else 1


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="poe prove --run", description="Real programs, patched, do the same.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--way", action="append", choices=[way.name for way in WAYS], help="only this way; repeatable")
    parser.add_argument("--probe", metavar="SPEC", help="these probes, instead of the ways")
    parser.add_argument("--action", default="count", help="what the probes of --probe do")
    parser.add_argument("--bisect", action="store_true", help="find the sites that make the first case differ")
    parser.add_argument("--boundaries", action="store_true", help="run nothing: objdump's boundaries at every site")
    return parser


def _judge(names: Sequence[str]) -> int:
    judged, seen = list[Judged](), set[tuple[str, str]]()
    for name in names:
        for one in judge(PROGRAMS[name]):
            if (one.machine, one.file) not in seen:
                judged.append(one)
            seen.add((one.machine, one.file))
            print(f"{name}: {one.file}: {one.verdict()}", file=sys.stderr, flush=True)
    rows = [
        (one.file, one.machine, f"{one.sites:,}", f"{(one.excused or Counter()).total():,}", one.verdict())
        for one in judged
    ]
    _print_table([_JUDGED, *rows])
    _print_reasons([one.excused or Counter() for one in judged])
    return 0 if all(one.verdict() == "confirmed" for one in judged) else 1


def _tell(outcome: Outcome) -> None:
    print(f"{outcome.program} {outcome.way}: {outcome.verdict()[:300]} ({outcome.seconds:.0f} s)", file=sys.stderr)
    for case, what in outcome.differences[:_SHOWN]:
        print(f"    {case}: {what}", file=sys.stderr)
    for blamed in outcome.blamed:
        print(f"    by {blamed}", file=sys.stderr)
    sys.stderr.flush()


def _row(outcome: Outcome) -> tuple[str, ...]:
    numbers = (outcome.cases, outcome.sites, outcome.hit, outcome.refused.total(), len(outcome.differences))
    return outcome.program, outcome.way, *(f"{one:,}" for one in numbers), f"{outcome.seconds:.1f}", outcome.verdict()


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(row[2:-1], widths[2:], strict=True)]
        print("  ".join([*cells, row[-1]]))


def _print_reasons(counted: Sequence[Counter[str]]) -> None:
    reasons = sum(counted, Counter[str]())
    for reason, count in reasons.most_common():
        print(f"{count:12,} {reason}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
