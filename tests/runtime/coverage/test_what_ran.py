"""What --coverage counts: against a hook of the emulator at every instruction, with and without probes."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kinst.runtime.api import open_image
from kinst.runtime.tracing.given import Machine
from kinst.targets.arch.registry import NAMES
from kinst.targets.image import open_image as open_elf
from tests.commands.in_process import kinst_run

SAMPLES = Path(__file__).parents[3] / "samples"
CALL = 'hash_bytes(1, "coverage", 8)'


def run(arch: str, file: Path, *options: str) -> dict[str, Any]:
    done = kinst_run(SAMPLES / f"kernel-{arch}.elf", "-q", "--clock", "icount", "--coverage", file, *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def counts(found: dict[str, Any]) -> dict[int, int]:
    """By address, of what is listed by instructions."""
    functions = (one for image in found["images"] for one in image["functions"])
    return {one["address"] + at: runs for one in functions for at, *_, runs in one.get("blocks", ()) if runs}


def hooked(arch: str, call: str | None) -> dict[int, int]:
    """How often each instruction of the image ran, by its link address: Unicorn calls a hook at each."""
    path, seen = SAMPLES / f"kernel-{arch}.elf", Counter[int]()
    elf, found = open_elf(path), Counter[int]()
    with open_image(path) as image, image.trace(machine=Machine(clock="icount"), call=call) as trace:
        trace.ql.hook_code(lambda _ql, address, _size: seen.update((address,)))
        trace.run()
    for address, runs in seen.items():
        for one in elf.segments:
            for start in (one.address, one.load_address):  # amd64 begins at physical addresses
                if 0 <= address - start < one.file_size:
                    found[address - start + one.address] = runs
    return dict(found)


@pytest.mark.turns
@pytest.mark.parametrize("arch", NAMES)
def test_a_call_is_counted_as_a_hook_at_each_instruction_does(arch: str, tmp_path: Path) -> None:
    options = "--call", CALL, "--coverage-of", "instructions"
    found = counts(run(arch, tmp_path / "a.json", *options))
    assert found == hooked(arch, CALL)
    assert max(found.values()) > 1


@pytest.mark.turns
@pytest.mark.parametrize("arch", NAMES)
def test_probes_change_nothing_of_a_call(arch: str, tmp_path: Path) -> None:
    run(arch, tmp_path / "plain.json", "--call", CALL)
    run(arch, tmp_path / "probed.json", "--call", CALL, "-n", "kinst::hash_bytes: { @[probename] = count(); }")
    assert (tmp_path / "plain.json").read_bytes() == (tmp_path / "probed.json").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("arch", NAMES)
def test_a_run_is_counted_as_a_hook_at_each_instruction_does(arch: str, tmp_path: Path) -> None:
    assert counts(run(arch, tmp_path / "a.json", "--coverage-of", "instructions")) == hooked(arch, None)


@pytest.mark.long
@pytest.mark.parametrize("method", ["auto", "trap", "block"])
@pytest.mark.parametrize("arch", NAMES)
def test_probes_change_nothing_of_a_run(arch: str, method: str, tmp_path: Path) -> None:
    run(arch, tmp_path / "plain.json")
    program = "kinst::: { @[probename] = count(); } fbt:::entry,fbt:::return { @a[probefunc] = count(); }"
    run(arch, tmp_path / "probed.json", "--method", method, "-n", program)
    assert (tmp_path / "plain.json").read_bytes() == (tmp_path / "probed.json").read_bytes()
