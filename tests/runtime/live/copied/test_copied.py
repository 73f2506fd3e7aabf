"""kinst-run --on with firmware that copies itself: its probes go on in the copy, and count what our machine counts."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kinst.rewriter.program import open_program
from kinst.rewriter.shell.progress import silent
from kinst.rewriter.standalone.copied import code_for_copy
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from tests.commands.in_process import command, kinst_run
from tests.runtime.live.qemus import needs
from tests.runtime.live.test_live import traced
from tests.runtime.tracing.test_moved_variables import built as moves_itself
from tests.targets.debuginfo.compiled import COMPILERS

SOURCE = Path(__file__).with_name("copies_itself.c")
SCRIPT = """
SECTIONS {{
  . = {base};
  first = .;
  .text : {{ *(.head) *(.text*) }}
  .data : {{ *(.rodata* .data* .got*) }}
  .dynamic : {{ *(.dynamic .dynsym .dynstr .hash .gnu.hash) }}
  .rela.dyn : {{ relocations = .; *(.rela*) relocations_end = .; }}
  .bss : {{ *(.bss* .sbss*) }}
  . = ALIGN(16);
  last = .;
}}
"""
BASES = {"amd64": 0x120_0000, "arm64": 0, "riscv64": 0x8000_0000}
COMMANDS = {
    "amd64": "qemu-system-x86_64 -M q35 -m 64M",
    "arm64": "qemu-system-aarch64 -M virt -cpu cortex-a57 -m 128M",
    "riscv64": "qemu-system-riscv64 -M virt -m 128M",
}
MODELS = {
    "riscv64": ("-mcmodel=medany", "-Wl,--no-relax"),
    "arm64": ("-mgeneral-regs-only",),
    "amd64": ("-mno-red-zone", "-mgeneral-regs-only"),
}
COUNTED = "fbt:::entry { @[probefunc] = count(); }"
COUNTS = {"early": 1, "both": 25, "inner": 20, "outer": 10, "in_the_copy": 1}
each_machine = pytest.mark.parametrize("arch", BASES)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def built(arch: str, folder: Path, *, above: int = 0) -> Path:
    """The firmware, which keeps so many bytes between its copy and the end of its memory."""
    needs(COMMANDS[arch].split()[0], COMPILERS[arch])
    script = folder / "script"
    script.write_text(SCRIPT.format(base=BASES[arch]))
    source, output = folder / SOURCE.name, folder / "image.elf"
    source.write_text(SOURCE.read_text())
    linked = ("-nostdlib", f"-Wl,-T,{script}", "-Wl,-pie,-e,_start,-z,norelro,--no-dynamic-linker,--build-id=none")
    options = ("-O1", "-ffreestanding", "-fpie", "-fno-stack-protector", "-fno-asynchronous-unwind-tables")
    words = [COMPILERS[arch], *options, *MODELS[arch], f"-DABOVE={above:#x}", *linked, str(source), "-o", str(output)]
    subprocess.run(words, check=True, capture_output=True)
    return output


@each_machine
@pytest.mark.each_machine
def test_what_is_counted_before_and_in_the_copy_is_one_count(arch: str, tmp_path: Path) -> None:
    there, _ = traced("--on", COMMANDS[arch], "--wall-timeout", "30s", "-n", COUNTED, built(arch, tmp_path))
    assert {key: count for (key,), count in there.items() if key in COUNTS} == COUNTS


@each_machine
def test_one_probe_is_enough_and_a_copy_has_names(arch: str, tmp_path: Path) -> None:
    """Nothing else that is watched was copied before its jump, and nothing after it."""
    program = "fbt::both:entry { @[stack(2), caller, arg0] = count(); }"
    there, _ = traced("--on", COMMANDS[arch], "--wall-timeout", "30s", "-n", program, built(arch, tmp_path))
    found = Counter[tuple[str, ...]]()
    for (frames, caller, _), count in there.items():
        stack = json.loads(frames)
        assert int(stack[1]["address"], 16) == caller
        found[tuple(re.sub(".*`|[+].*", "", one["symbol"]) for one in stack)] += count
    assert found == {("both", "early"): 5, ("both", "inner"): 20}
    assert sorted(number for *_, number in there) == sorted([*range(5), *range(20)])


@pytest.mark.parametrize("arch", ["arm64", "amd64"])
def test_a_copy_whose_trampolines_have_no_place_is_told(arch: str, tmp_path: Path) -> None:
    image = built(arch, tmp_path, above=40 << 20)
    done = kinst_run("-q", "--on", COMMANDS[arch], "--wall-timeout", "30s", "-n", COUNTED, image)
    assert done.returncode == 1
    assert re.search("the image copied itself to .*: the trampolines for that would be at 0x", done.stderr)
    assert done.stderr.count("\n") == 1


@each_machine
def test_an_image_without_relocations_is_not_left_alone_either(arch: str, tmp_path: Path) -> None:
    """What it counts in its copy is in no counter of ours."""
    needs(COMMANDS[arch].split()[0])
    done = kinst_run(
        *("-q", "--on", COMMANDS[arch], "--wall-timeout", "20s", "-n", "fbt::count:entry { @ = count(); }"),
        moves_itself(arch, tmp_path),
    )
    assert done.returncode == 1, done.stdout
    assert "the image copied itself to" in done.stderr


@each_machine
def test_who_has_the_stub_is_told(arch: str, tmp_path: Path) -> None:
    done = kinst_run("-q", "--on", f"{COMMANDS[arch]} -s", "-n", COUNTED, built(arch, tmp_path))
    assert done.returncode == 2
    assert "may copy itself elsewhere: QEMU's gdb stub tells us when: leave -s and -gdb out" in done.stderr


@each_machine
@pytest.mark.each_machine
def test_the_copys_trampolines_differ_in_what_refers_to_data(arch: str, tmp_path: Path) -> None:
    """As far away as the image itself, they are its own."""
    path, out = built(arch, tmp_path), tmp_path / "alone.elf"
    base = BASES[arch]
    places = ("--trampoline-base", f"{base + 0x10_0000:#x}", "--data-base", f"{base + 0x4000_0000:#x}")
    words = ("--standalone", "--stays", *places, "--probe", "fbt:::entry", "-q", "-o", out)
    assert command("rewrite", path, *words).returncode == 0
    made = open_image(out)
    manifest, program = find_manifest(made), open_program(open_image(path))
    assert manifest is not None
    own = made.read(*manifest.trampolines)
    assert code_for_copy(program, manifest, 0, silent) == own
    moved = code_for_copy(program, manifest, 0x100_0000, silent)
    assert len(moved) == len(own)
    assert moved != own
