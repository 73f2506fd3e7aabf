"""A module that a kernel loads as Linux does, probed as it loads: at two places, relocated, and freed.

The kernel is a small one with Linux' own records of a module, so that all is read from memory as it is of Linux.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from kinst.targets.elf.symbols import SYMBOL
from kinst.targets.image import open_image
from tests.runtime.patched.test_modules import BASES, OPTIONS, PREFIXES

pytestmark = pytest.mark.turns
KERNEL = Path(__file__).with_name("loads_as_linux.c")
MODULE = """
int here = 3;
__attribute__((noinline, noclone)) int apart(int value) { here += value; return here * 3; }
int first(int value) { return apart(value) + apart(value + 1); }
__attribute__((section(".init.text"))) int start_module(void) { here = 4; return apart(1); }
"""
PROGRAM = """
fbt:one::entry { printf("%s %d\\n", probefunc, (int)arg0); }
fbt:one::return { printf("%s = %d\\n", probefunc, (int)arg1); }
fbt:one:first:entry /args[0] == (int)arg0/ { typed++; }
fbt::report:entry { printf("report %d\\n", arg0); }
fbt:one:apart:entry { @callers[caller] = count(); @stacks[stackdepth > 2 ? "deep" : "flat"] = count(); }
END { printf("typed %d\\n", typed); printa("from %a %@d\\n", @callers); printa("%s %@d\\n", @stacks); }
"""
PLAIN = 'fbt::report:entry { printf("report %d\\n", arg0); }'
EVERY = 'kinst:one:: { @[probefunc, probename] = count(); } END { printa("%s %s %@d\\n", @); } ' + PLAIN
_SECTIONS = (
    "SECTIONS {{ .text {core:#x} : {{ *(.text*) }} .data : {{ *(.data*) *(.bss*) }} "
    ".init.text {init:#x} : {{ *(.init.text) }} }}"
)


class Build:
    """The kernel and the file of its module."""

    def __init__(self, machine: str, folder: Path) -> None:
        self.machine, self.folder, self.prefix = machine, folder, PREFIXES[machine]
        if shutil.which(f"{self.prefix}gcc") is None:
            pytest.skip(f"no {self.prefix}gcc")
        shutil.copy(KERNEL, folder)
        options = ("-ffreestanding", "-fno-stack-protector", *OPTIONS[machine])
        self.rebuild(MODULE)
        symbols, strings = (self._content(name) for name in (".symtab", ".strtab"))
        defines = [f"-DSYMBOLS={len(symbols) // SYMBOL.itemsize}"]
        for number in (1, 2):
            defines += self._placed(number, BASES[machine] + number * 0x100_0000 + 0x40 * number)
        (folder / "strtab.bin").write_bytes(strings)
        link = ("-fno-pic", "-no-pie", "-nostdlib", "-static", "-Wl,--build-id=none", "-Wl,-e,_start")
        place = f"-Wl,-Ttext-segment={BASES[machine]:#x}"
        self._tool("gcc", "-O1", "-g", *options, *defines, *link, place, "-o", "kernel.elf", KERNEL.name)

    def rebuild(self, source: str) -> None:
        """Make the module's file of other source, and leave what the kernel loads as it is."""
        (self.folder / "one.c").write_text(source)
        options = ("-ffreestanding", "-fno-stack-protector", *OPTIONS[self.machine])
        self._tool("gcc", "-O1", "-g", "-c", *options, "-o", "one.ko", "one.c")

    def _tool(self, *words: str) -> None:
        subprocess.run([self.prefix + words[0], *words[1:]], check=True, cwd=self.folder, capture_output=True)

    def _placed(self, number: int, core: int) -> list[str]:
        """Link the module to a place, and make the symbol table that a loader makes of the file's."""
        init = core + 0x10_0000
        (self.folder / "place.ld").write_text(_SECTIONS.format(core=core, init=init))
        self._tool("ld", "-T", "place.ld", "-o", "one.elf", "one.ko")
        parts = {"init": ("-j", ".init.text"), "core": ("-j", ".text", "-j", ".data", "-R", ".init.text")}
        for name, chosen in parts.items():
            self._tool("objcopy", "-O", "binary", *chosen, "one.elf", f"{name}_{number}.bin")
        file, linked = open_image(self.folder / "one.ko"), open_image(self.folder / "one.elf")
        rows = np.frombuffer(self._content(".symtab"), SYMBOL).copy()
        names = {one.index: one.name for one in file.sections}
        for row in rows:
            section = linked.section(names.get(int(row["section"]), ""))
            if row["section"] and section is not None:
                row["value"] += section.address
        (self.folder / f"symtab_{number}.bin").write_bytes(rows.tobytes())
        first, start = (linked.symbols.address_of(name) for name in ("first", "start_module"))
        values = {"CORE": core, "INIT_AREA": init, "FIRST": first, "INIT": start}
        return [f"-D{name}_{number}={value:#x}" for name, value in values.items()]

    def _content(self, name: str) -> bytes:
        file = open_image(self.folder / "one.ko")
        section = file.section(name)
        assert section is not None
        return file.data[section.offset : section.offset + section.size].tobytes()

    def run(self, program: str, *more: str, quiet: Sequence[str] = ("-q",)) -> tuple[list[str], str]:
        """What a program prints, and errors."""
        words = [*quiet, "-n", program, *more, str(self.folder / "kernel.elf"), "--timeout", "5"]
        result = CliRunner().invoke(run, words)
        assert result.exit_code == 0, result.stderr
        return [line.strip() for line in result.stdout.splitlines() if line.strip()], result.stderr


@pytest.fixture(params=BASES)
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    return Build(request.param, tmp_path)


def expected() -> list[str]:
    """What happens at each of three loadings, by the module's source."""
    lines, here = ["start_module", "apart 1"], 5
    lines += [f"apart = {here * 3}", f"start_module = {here * 3}", f"report {here * 3}"]
    for value in (5, 6):
        lines.append(f"first {value}")
        total = 0
        for given in (value, value + 1):
            here += given
            total += here * 3
            lines += [f"apart {given}", f"apart = {here * 3}"]
        lines += [f"first = {total}", f"report {total}"]
    return lines


def test_probes_fire_wherever_it_is_and_the_guest_sees_its_own_code_again(build: Build) -> None:
    given = f"--module=one={build.folder}/one.ko"
    plain, _ = build.run(PLAIN)
    lines, errors = build.run(PROGRAM, given)
    assert not errors
    shown = ["start_module" if line.startswith("start_module ") and "=" not in line else line for line in lines]
    reports = [line for line in lines if line.startswith("report ")]
    assert reports == plain  # sums of the module's code, too, when it is about to be freed
    happens = [line for last in plain[3::4] for line in (*expected(), last)]
    assert shown[: len(happens)] == happens
    told = shown[len(happens) :]
    assert told[0] == "typed 6" and told[-1] == "deep 15"
    callers = sorted(line.split("+")[0].replace("from ", "") for line in told[1:-1])
    assert callers == ["one`first", "one`first", "one`first", "one`first", "one`start_module", "one`start_module"]


def test_every_instruction_is_executed_as_without_probes(build: Build) -> None:
    folder = build.folder / "lib" / "kernel"
    folder.mkdir(parents=True)
    shutil.copy(build.folder / "one.ko", folder)
    lines, errors = build.run(EVERY, f"--module={build.folder}/lib")
    assert not errors and [line for line in lines if line.startswith("report ")] == build.run(PLAIN)[0]
    counts = [line.split() for line in lines if not line.startswith("report ")]
    times = {"start_module": "3", "first": "6", "apart": "15"}  # none of them has a branch
    assert {function for function, _, _ in counts} == set(times)
    assert all(count == times[function] for function, _, count in counts)


def test_it_is_said_that_a_module_is_not_loaded_or_is_another(build: Build) -> None:
    other = build.folder / "two.ko"
    shutil.copy(build.folder / "one.ko", other)
    _, errors = build.run("fbt:two::entry { @ = count(); }", f"--module=two={other}", quiet=())
    assert "two: the guest has not loaded it\n" in errors
    build.rebuild(MODULE.replace("first", "third"))
    lines, errors = build.run('fbt:one::entry { printf("hit\\n"); }', f"--module=one={build.folder}/one.ko")
    assert not lines and "one: the guest has loaded another file than" in errors


def test_modules_have_no_probes_under_qemu_and_none_in_snapshots(build: Build) -> None:
    given = f"--module=one={build.folder}/one.ko"
    kernel = str(build.folder / "kernel.elf")
    words = ["-q", "-n", "fbt:one::entry", given, kernel]
    snapshot = CliRunner().invoke(run, [*words, "--snapshot-at", f"END={build.folder}/s"])
    assert snapshot.exit_code == 2 and "start without probes of one" in snapshot.stderr
    live = CliRunner().invoke(run, [*words, "--on", "qemu"])
    assert live.exit_code == 2 and "under QEMU" in live.stderr
