"""Counts of images that are elsewhere than linked, and of several CPUs: against a hook of Unicorn at every instruction.

Where the code was, the hook does not know. What is in memory there at the end says it: words of the image's code.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from kinst.runtime.api import open_image
from kinst.runtime.tracing.given import Machine
from kinst.targets.image import Image
from kinst.targets.image import open_image as open_elf
from tests.commands.in_process import kinst_run
from tests.images import real_image

SAMPLES: Final = Path(__file__).parents[3] / "samples"
_FEW: Final = 0.001  # of the pieces that are found, as many tell nothing


def counted(path: Path, file: Path, *options: str) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
    """How often each instruction of functions ran, and code that is in none: start, end and runs."""
    words = ("-q", "--clock", "icount", "--coverage", file, "--coverage-of", "instructions", *options)
    done = kinst_run(path, *words)
    assert done.returncode == 0, done.stderr
    (image,) = json.loads(file.read_text())["images"]
    blocks = ((one["address"] + at, runs) for one in image["functions"] for at, *_, runs in one.get("blocks", ()))
    return {at: runs for at, runs in blocks if runs}, [(at, at + size, runs) for at, size, runs in image["elsewhere"]]


def hooked(path: Path, machine: Machine, seconds: float | None) -> tuple[Counter[int], list[int]]:
    """How often each instruction of the image ran, by link address, and how far from there its code was."""
    elf, seen, code = open_elf(path), Counter[int](), dict[int, bytes]()
    with open_image(path) as image, image.trace(machine=machine) as trace:

        def ran(_ql, address: int, _size: int) -> None:  # type: ignore[no-untyped-def]
            seen[address] += 1
            if seen[address] == 1:
                code[address] = trace.guest.system.instruction(address)

        trace.ql.hook_code(ran)
        trace.run(seconds=seconds)
    distances = _distances(elf, code)
    found = Counter[int]()
    for address, runs in seen.items():
        for distance in distances:
            if any(0 <= address - distance - one.address < one.size for one in elf.code_regions):
                found[address - distance] += runs
                break
    return found, distances


def _distances(elf: Image, code: dict[int, bytes]) -> list[int]:
    votes = Counter[int]()
    parts = [(one.address, elf.data[one.offset : one.offset + one.size].tobytes()) for one in elf.code_regions]
    for address, piece in code.items():
        places = [start + at for start, data in parts if (at := data.find(piece)) >= 0 and data.find(piece, at + 1) < 0]
        if len(places) == 1:
            votes[address - places[0]] += 1
    return [distance for distance, count in votes.most_common() if count > _FEW * votes.total()]


_SEED: Final = 0x1234_5678_9ABC_DEF0
CASES: Final = {  # seconds of the machine, and --kaslr-seed
    "u-boot-arm64": (0.4, None),
    "u-boot-riscv64": (0.12, None),
    "linux-arm64": (0.02, _SEED),
    "linux-riscv64": (0.02, _SEED),
    "linux-amd64": (0.02, _SEED),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_code_that_moves_is_counted_as_a_hook_at_each_instruction_does(name: str, tmp_path: Path) -> None:
    seconds, seed = CASES[name]
    path = real_image(name)
    options = ("--timeout", f"{seconds}", "--console", str(tmp_path / "console"))
    found, elsewhere = counted(
        path, tmp_path / "a.json", *options, *(() if seed is None else ("--kaslr-seed", str(seed)))
    )
    wanted, distances = hooked(path, Machine(clock="icount", kaslr_seed=seed), seconds)
    assert distances and distances != [0]  # it did move
    others = {at: runs for start, end, runs in elsewhere for at in wanted if start <= at < end and at not in found}
    different = [at for at in {*found, *wanted} if (found | others).get(at) != wanted.get(at)]
    assert [(hex(at), found.get(at), wanted.get(at)) for at in sorted(different)] == []
    assert len(found) > 400
