"""Common inline functions of Linux kernels, as a user probes them: every difference of the image is explained, and
three tools confirm every site. Only of kernels that are in the cache."""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kinst.rewriter import cli
from tests.images import at_hand, real_image
from tests.targets.debuginfo.breakpoints import debugger, outside_of_copies, unlike
from tests.targets.debuginfo.whole_dump import WholeCopy, whole_copies

OBJDUMP = {
    "linux-amd64": "x86_64-linux-gnu-objdump",
    "linux-arm64": "aarch64-linux-gnu-objdump",
    "linux-riscv64": "riscv64-linux-gnu-objdump",
}
FUNCTIONS = ("get_current", "list_empty", "spin_lock")
LINES = 10  # sites whose lines gdb is asked for


@pytest.mark.long
@pytest.mark.parametrize("kernel", at_hand(*OBJDUMP))
def test_three_tools_confirm_three_functions(kernel: str, tmp_path: Path) -> None:
    plain, patched = real_image(kernel), tmp_path / "vmlinux"
    names = [f"kinst::{function}:{name}" for name in ("entry", "return") for function in FUNCTIONS]
    words = [word for name in names for word in ("--probe", name)]
    written = CliRunner().invoke(cli.rewrite, [str(plain), *words, "-o", str(patched), "--format", "json"])
    assert written.exit_code == 0, written.stderr
    explained = CliRunner().invoke(cli.diff, [str(plain), str(patched)])
    assert explained.exit_code == 0, explained.stdout

    specs = json.loads(written.stdout)["specs"]
    dump = list(whole_copies(plain, set(FUNCTIONS)))
    for function, entered, left in zip(FUNCTIONS, specs[:3], specs[3:], strict=True):
        copies = [copy for copy in dump if copy.function == function]
        check_entries(entered, {copy.entry for copy in copies})
        check_ways_out(left, copies)
    sites = {address for spec in specs for address in addresses(spec)}
    assert len(sites) > 5000
    assert instructions(OBJDUMP[kernel], plain, sites) == sites
    check_breakpoints(plain, dump)
    check_patched(patched, random.Random(kernel).sample(sorted(sites), LINES))
    patched.unlink()  # up to 600 MB


def addresses(spec: dict[str, Any]) -> list[int]:
    found: list[int] = [site["address"] for site in spec["inlined"]["sites"]]
    assert len(set(found)) == len(found)
    return found


def check_entries(spec: dict[str, Any], entries: Set[int]) -> None:
    """Each entry of a copy is a site, or refused for what its code is."""
    sites, refused = set(addresses(spec)), {one["address"] for one in spec["refusals"]}
    assert sites <= entries <= sites | refused
    assert not {"no_boundary", "no_function"} & set(spec["reasons"])


def check_ways_out(spec: dict[str, Any], copies: Sequence[WholeCopy]) -> None:
    """They are in copies."""
    ranges = sorted({pair for copy in copies for pair in copy.ranges}, reverse=True)
    end = 0
    for address in sorted(addresses(spec)):
        while ranges and ranges[-1][0] <= address:
            end = max(end, ranges.pop()[1])
        assert address < end, hex(address)


def instructions(objdump: str, image: Path, among: Set[int]) -> set[int]:
    """The addresses at which objdump sees instructions begin."""
    if shutil.which(objdump) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {objdump}"
        pytest.skip(f"no {objdump}")
    command = [objdump, "-d", "--no-show-raw-insn", str(image)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        starts = (int(line.partition(":")[0], 16) for line in process.stdout if ":\t" in line)
        return {start for start in starts if start in among}


def check_breakpoints(image: Path, dump: Sequence[WholeCopy]) -> None:
    """gdb lists the entries of all copies and nothing else, by its own rules."""
    gdb = debugger()
    found, outside = gdb.locations(image, FUNCTIONS), outside_of_copies(image, FUNCTIONS)
    for function in FUNCTIONS:
        copies = [copy for copy in dump if copy.function == function]
        assert not unlike(found[function], {gdb.entry(copy) for copy in copies}, outside[function])
        assert sum(copy.entry in found[function] for copy in copies) > 0.5 * len(copies)


def check_patched(image: Path, sites: Sequence[int]) -> None:
    """readelf has nothing to say of the patched image, and gdb reads its debug information."""
    read = subprocess.run(["readelf", "-SW", str(image)], check=True, capture_output=True, text=True)
    assert not read.stderr and " .kinst.text " in read.stdout
    lines = debugger().lines(image, sites)
    assert len(lines) == len(sites) and all(line.startswith("Line ") for line in lines)
