"""Real images -> a table: rewritten exactly, explained, restored, every site where objdump sees an instruction begin.

    python -m tests.prove [NAME...]
    python -m tests.prove --run ...     (another proof: see tests/running/command.py)

Each image (all that `tests.image_list` knows unless some are named; what is missing is downloaded) gets every probe
that `kinst:::` and `fbt:::` stand for, in a process of its own, one after the other. Below the table is why sites that
objdump does not confirm are right all the same, and how many are. Exit status 1 if one fails.
"""

import argparse
import hashlib
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from kinst.rewriter.diffing.diff import compare
from kinst.rewriter.rewriting import Opened, Source, open_source, plan_probes
from kinst.rewriter.writing.restore import restore
from kinst.rewriter.writing.write import write_image
from kinst.targets.image import Image, open_image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.probe import parse_probe_names
from tests.boundaries import Stray, strays
from tests.contract import check_contract
from tests.image_list import IMAGES, UNSUPPORTED
from tests.images import real_image

PROBES = "kinst:::,fbt:::"
_COLUMNS = ("image", "machine", "sites", "excused", "strays", "seconds", "MB", "outcome")


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of one image. `failures` is empty if all held; `excused` are reasons and sites of each."""

    name: str
    machine: str
    sites: int
    excused: Counter[str]
    strays: int
    seconds: float
    megabytes: int
    failures: tuple[str, ...]

    def row(self) -> tuple[str, ...]:
        """Its line in the table."""
        counts = (f"{count:,}" for count in (self.sites, self.excused.total(), self.strays))
        cost = (f"{self.seconds:.1f}", str(self.megabytes))
        return self.name, self.machine, *counts, *cost, "; ".join(self.failures) or "proved"


def prove(name: str) -> Proof:
    """Everything that is said of one image."""
    start = time.perf_counter()
    path = real_image(name)
    machine, sites, failures, found = "", 0, list[str](), list[Stray]()
    try:
        opened = open_source(Source(path))
        machine = opened.image.facts.name
        with _unpacked(path, opened.image) as elf:
            manifest, failures = _rewritten(opened, elf)
            sites, found = len(manifest.sites), strays(opened.program, elf, manifest.sites)
    except Exception as problem:  # whatever it is, the other images are still to be tried
        failures = [*failures, f"{type(problem).__name__}: {problem}"]
    real = [stray for stray in found if not stray.reason]
    failures += [f"{len(real)} sites where no instruction begins: {_some(real)}"] if real else []
    seconds, memory = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    excused = Counter(stray.reason for stray in found if stray.reason)
    return Proof(name, machine, sites, excused, len(real), seconds, memory, tuple(failures))


def _some(found: Sequence[Stray]) -> str:
    return ", ".join(str(stray) for stray in found[:4])


@contextmanager
def _unpacked(path: Path, image: Image) -> Iterator[Path]:
    """The ELF file that an installed kernel is packed around, which is what is patched; others are it themselves."""
    with path.open("rb") as file:
        if file.read(4) == b"\x7fELF":
            yield path
            return
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        elf = Path(folder, "unpacked.elf")
        elf.write_bytes(image.data.tobytes())
        yield elf


def _rewritten(opened: Opened, original: Path) -> tuple[Manifest, list[str]]:
    with tempfile.TemporaryDirectory(dir=original.parent) as folder:
        patched, back = Path(folder, "patched.elf"), Path(folder, "back.elf")
        manifest = write_image(plan_probes(opened, parse_probe_names(PROBES))[1], patched)
        restore(open_image(patched), manifest, back)
        checks: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("not exact", lambda: bool(check_contract(original.read_bytes(), patched.read_bytes()))),
            ("not explained", lambda: compare(open_image(original), open_image(patched)).is_explained),
            ("not restored", lambda: _digest(original) == _digest(back)),
        )
        return manifest, [problem for what, check in checks for problem in _problem(what, check)]


def _problem(what: str, check: Callable[[], bool]) -> list[str]:
    try:
        return [] if check() else [what]
    except AssertionError as wrong:
        return [f"{what}: {wrong}"]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Prove the images, one line each as it is done, then the table."""
    names = _named()
    proofs = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for name in names:
            proofs.append(pool.submit(prove, name).result())
            print(f"{name}: {proofs[-1].row()[-1]} ({proofs[-1].seconds:.0f} s)", file=sys.stderr, flush=True)
    _print_table([_COLUMNS, *(proof.row() for proof in proofs)])
    for reason, count in sum((proof.excused for proof in proofs), Counter[str]()).most_common():
        print(f"{count:12,} {reason}")
    return 1 if any(proof.failures for proof in proofs) else 0


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(row[2:-1], widths[2:], strict=True)]
        print("  ".join([*cells, row[-1]]))


def _named() -> Sequence[str]:
    parser = argparse.ArgumentParser(prog="poe prove", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", action="store_true", help="another proof, of programs: see --run --help")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(IMAGES)}; default: all that run")
    words: list[str] = parser.parse_args().names
    unknown = [word for word in words if word not in IMAGES]
    if unknown:
        parser.error(f"no image {', '.join(unknown)}; there are {', '.join(IMAGES)}")
    return words or [name for name in IMAGES if name not in UNSUPPORTED]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        from tests.running.command import main as run

        sys.exit(run(sys.argv[2:]))
    sys.exit(main())
