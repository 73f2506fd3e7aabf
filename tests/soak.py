"""Random subsets of all sites, seed by seed: console, time, memory and registers must be the plain run's.

    python -m tests.soak [IMAGE...] [--seeds 0-49] [--log FILE]        (`poe soak`)

Each seed draws where to put probes: of small images any share of all instructions from a thousandth to a quarter (of a
sample all), of Linux every instruction of some functions. A line for each is appended to the log (in the cache, beside
the images), and what is there already is not run again. Linux boots as far as its message about memory. Exit status 1
if one differs.
"""

import argparse
import json
import multiprocessing
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime.tracing.guests.guest import Guest
from tests.images import CACHE, at_hand
from tests.system.cases import CASES, KERNELS, Case
from tests.system.plain import copies_of
from tests.system.runs import Run, run
from tests.system.state import differences

_FUNCTIONS: Final = 400  # of Linux that get probes
_BOUND: Final = 600  # s that a seed may take
_FORK: Final = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Untraced:
    """A plain run with nobody watching."""

    run: Run
    distances: tuple[int, ...]


def _bias(done: Run) -> int:
    return done.guest.loaded.bias


def _is_large(case: Case) -> bool:
    return case in KERNELS


def _descriptions(case: Case, draw: random.Random) -> Sequence[str]:
    if not _is_large(case):
        return ("kinst:::",)
    names = sorted({*open_source(Source(case.path)).program.functions.names})
    return [f"kinst::{name}:" for name in draw.sample(names, _FUNCTIONS)]


def _share(case: Case, draw: random.Random) -> float:
    if _is_large(case):
        return 1.0
    return float(10 ** -draw.uniform(0 if case.is_sample else 0.6, 3))


def _patched(case: Case, seed: int) -> Run:
    draw = random.Random(f"{case.image} {seed}")
    share = _share(case, draw)

    def thin_out(guest: Guest) -> None:
        surroundings = guest.surroundings
        known = surroundings.providers.enabled
        dropped = np.random.default_rng(draw.randrange(1 << 32)).random(len(known)) >= share
        surroundings.providers.disable(known[dropped])
        surroundings.arm()

    # Some functions have no instruction that can be probed.
    return run(case, _descriptions(case, draw), options={"zdefs": True}, prepare=thin_out)


def _compare(case: Case, plain: Untraced, seed: int, end: Any) -> None:
    try:
        done = _patched(case, seed)
        found = differences(plain, done)
        end.send((int(done.sites.is_armed.sum()), done.hits.total(), found))
    except Exception as problem:  # whatever it is, the other seeds are still to be tried
        end.send((0, 0, [f"{type(problem).__name__}: {problem}"]))


def _seed(case: Case, plain: Untraced, seed: int) -> dict[str, Any]:
    """One seed in a process of its own: what it takes is given back."""
    start = time.monotonic()
    mine, its = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_compare, args=(case, plain, seed, its))
    process.start()
    its.close()
    try:
        sites, hits, found = mine.recv() if mine.poll(_BOUND) else (0, 0, [f"more than {_BOUND} s"])
    except EOFError:
        sites, hits, found = 0, 0, ["the process crashed"]
    process.kill()
    process.join()
    seconds = round(time.monotonic() - start, 1)
    return {"image": case.image, "seed": seed, "sites": sites, "hits": hits, "seconds": seconds, "differences": found}


def _done(log: Path) -> set[tuple[str, int]]:
    rows = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
    return {(row["image"], row["seed"]) for row in rows}


def soak(cases: Iterable[Case], seeds: Sequence[int], log: Path) -> bool:
    """Run what the log does not have yet; whether all of it was equal."""
    is_equal, done = True, _done(log)
    for case in cases:
        missing = [seed for seed in seeds if (case.image, seed) not in done]
        if not missing:
            continue
        plain_run = run(case)
        plain = Untraced(plain_run, (_bias(plain_run), *copies_of(plain_run)))
        for seed in missing:
            row = _seed(case, plain, seed)
            is_equal &= not row["differences"]
            with log.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    return is_equal


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="poe soak", description="Random subsets of sites against the plain run.")
    parser.add_argument("images", nargs="*", help="names of images; default: all that are at hand")
    parser.add_argument("--seeds", default="0-49", metavar="FIRST-LAST")
    parser.add_argument("--log", type=Path, default=CACHE.parent / "soak.jsonl")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    kernels = at_hand(*(case.image for case in KERNELS))
    cases = [case for case in (*CASES, *KERNELS) if case in CASES or case.image in kernels]
    wanted = [case for case in cases if not given.images or case.image in given.images]
    return 0 if soak(wanted, range(int(first), int(last or first) + 1), given.log) else 1


if __name__ == "__main__":
    sys.exit(main())
