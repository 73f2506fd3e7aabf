"""Five hundred real images -> a table by kind: patched and exact, refused with which reason, failed.

    python -m tests.corpus [OPTION of kinst-batch...]

Kernel modules of three machines, modules of GRUB, firmware, hypervisors, static programs: with every probe that
`kinst:::` and `fbt:::` stand for, by kinst-batch. What is missing is downloaded once; what was done is not done again.
Exit status 1 if one fails.
"""

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kinst.runtime.batch.cli import batch
from tests.image_list import IMAGES, RealImage
from tests.images import CACHE, members_of, module_files, real_image

PROBES: Final = "kinst:::,fbt:::"
_FOLDER: Final = CACHE.parent / "corpus"
_KERNELS: Final = {"amd64": "linux-amd64", "arm64": "linux-arm64", "riscv64": "linux-riscv64"}
_GRUB: Final = {
    "amd64": RealImage("grub-efi-amd64-bin", "amd64", "trixie", r"usr/lib/grub/x86_64-efi/.*\.(mod|img)"),
    "arm64": RealImage("grub-efi-arm64-bin", "arm64", "trixie", r"usr/lib/grub/arm64-efi/.*\.(mod|img)"),
    "riscv64": RealImage("grub-efi-riscv64-bin", "riscv64", "trixie", r"usr/lib/grub/riscv64-efi/.*\.(mod|img)"),
    "i386": RealImage("grub-pc-bin", "amd64", "trixie", r"usr/lib/grub/i386-pc/.*\.(mod|img)"),
}
_MODULES: Final = 125  # of each machine, evenly among all by name
_GRUB_MODULES: Final = {"amd64": 30, "arm64": 30, "riscv64": 30, "i386": 5}
_LARGEST: Final = 8 << 20  # bytes: `poe prove` has the larger ones
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d[\d,]*")


def files() -> Iterator[tuple[str, Path]]:
    """The images of the corpus, by the name of their kind."""
    for machine, kernel in _KERNELS.items():
        yield from ((f"modules-{machine}", path) for path in _spread(module_files(kernel), _MODULES))
    for machine, package in _GRUB.items():
        found = members_of(f"grub-modules-{machine}", package)
        yield from ((f"grub-{machine}", path) for path in _spread(found, _GRUB_MODULES[machine]))
    for name in IMAGES:
        if (CACHE / name / "image.elf").exists() and real_image(name).stat().st_size < _LARGEST:
            yield "images", real_image(name)


def _spread(found: Sequence[Path], count: int) -> Sequence[Path]:
    """So many of them, evenly."""
    return [found[number * len(found) // count] for number in range(count)] if len(found) > count else found


def lay_out(found: Iterable[tuple[str, Path]]) -> None:
    """Links to the images in folders by kind, which is what a batch takes."""
    for kind, path in found:
        name = path.parent.name if path.name == "image.elf" else path.name
        link = _FOLDER / "all" / kind / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(path)


def summary(rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """The table, and the reasons behind it."""
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    sites, reasons = Counter[str](), Counter[tuple[str, str]]()
    for row in rows:
        kind = row["image"].split("/")[-2]
        kinds[kind][row["outcome"]] += 1
        kinds["all"][row["outcome"]] += 1
        sites[kind] += int(row["sites"] or 0)
        sites["all"] += int(row["sites"] or 0)
        if row["reason"]:
            reasons[row["outcome"], _NUMBER.sub("N", row["reason"].splitlines()[0])] += 1
    yield f"{'kind':16} {'images':>7} {'exact':>7} {'refused':>8} {'failed':>7} {'sites':>12}"
    for kind, outcomes in sorted(kinds.items(), key=lambda item: (item[0] == "all", item[0])):
        failed = outcomes.total() - outcomes["done"] - outcomes["refused"]
        counts = f"{outcomes['done']:7,} {outcomes['refused']:8,} {failed:7,} {sites[kind]:12,}"
        yield f"{kind:16} {outcomes.total():7,} {counts}"
    for (outcome, reason), count in reasons.most_common():
        yield f"{count:5,} {outcome}: {reason}"


def main(words: Sequence[str]) -> int:
    """Do what is left, and print the table."""
    parser = argparse.ArgumentParser(
        prog="poe corpus",
        usage="%(prog)s [-h] [OPTION of kinst-batch...]",
        description=(__doc__ or "").partition("\n")[0],
        allow_abbrev=False,
    )
    _, words = parser.parse_known_args(words)
    lay_out(files())
    csv.field_size_limit(1 << 30)
    options = [str(_FOLDER / "all"), "--probe", PROBES, "-o", str(_FOLDER / "batch"), "--table", "csv", *words]
    try:
        batch.main(options, "kinst-batch", standalone_mode=False)
    except SystemExit as end:
        status = int(end.code or 0)
    with (_FOLDER / "batch" / "table.csv").open(newline="") as file:
        print("\n".join(summary(csv.DictReader(file))))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
