"""Linux at a random offset: what runs before the kernel moved and after it fires as often as in one that stays, and
names are right. On arm64 the kernel moves itself; on amd64 its loader does, as the decompressor would. Debian's for
riscv64 is built to stay where it was linked: only its place in memory changes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.gated import long_after_first
from tests.images import at_hand, real_image

UNTIL = "Zone ranges"
SEED = "1311768465173141112"
# Functions that run in the identity map; the last one is called by the first.
EARLY = {
    "linux-amd64": ("startup_64", "__startup_64"),
    "linux-arm64": ("primary_entry", "init_kernel_el"),
    "linux-riscv64": ("_start_kernel", "setup_vm"),
}
PROGRAM = """
fbt::setup_[!v]*:entry, fbt::start_kernel:entry, EARLY { @[probefunc] = count(); }
LAST { printf("%p", caller); stack(2); }
fbt::setup_arch:entry { printf("%p", caller); stack(); }
fbt::setup_arch:entry /regs[R_PC] - (uint64_t)&`setup_arch <= 16/ { @["a function's own address"] = count(); }
"""
CONSOLE = {"linux-arm64": ("--append", "earlycon=pl011,0x9000000"), "linux-riscv64": ("--append", "earlycon=sbi")}
STEP = {"linux-amd64": 0x20_0000, "linux-arm64": 0x1_0000}  # of the offsets that each may have


def traced(image: str, folder: Path, *words: str) -> tuple[dict[str, int], list[int], list[list[str]]]:
    """How often each function was called; who called the last early function and setup_arch(), and their stacks."""
    early = [f"fbt::{name}:entry" for name in EARLY[image]]
    program = PROGRAM.replace("EARLY", ", ".join(early)).replace("LAST", early[-1])
    options = ("--clock", "icount", "--until", UNTIL, "--timeout", "60", "--console", str(folder / "console"))
    arguments = ("-q", "--format", "json", "-n", program, *options, *CONSOLE.get(image, ()), *words)
    result = CliRunner().invoke(run, (*arguments, str(real_image(image))), prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)["dtrace"]
    counts = {one["keys"][0]: one["value"] for one in document["aggregations"][0]["aggregation-data"]}
    outputs = [probe["output"] for probe in document["probes"]]
    callers = [int(output[0]["message"], 16) for output in outputs]
    stacks = [[frame["symbol"].partition("`")[2] for frame in output[-1]["stack-frames"]] for output in outputs]
    return counts, callers, stacks


@pytest.mark.parametrize("image", long_after_first(at_hand(*EARLY)))
def test_linux_at_a_random_offset(image: str, tmp_path: Path) -> None:
    there, callers_there, stacks_there = traced(image, tmp_path, "--kaslr-seed", SEED)
    here, callers_here, stacks_here = traced(image, tmp_path)
    assert there == here
    assert all(here[name] == 1 for name in (*EARLY[image], "start_kernel", "setup_arch", "a function's own address"))
    assert stacks_there == stacks_here
    assert [names[0].partition("+")[0] for names in stacks_here] == [EARLY[image][-1], "setup_arch"]
    physical, virtual = (there - here for there, here in zip(callers_there, callers_here, strict=True))
    assert physical % 0x20_0000 == 0 != physical
    step = STEP.get(image)
    assert virtual == 0 if step is None else virtual % step == 0 != virtual
