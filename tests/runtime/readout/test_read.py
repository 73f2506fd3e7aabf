"""kinst-run --read: what a standalone image counted under a real QEMU, told here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from kinst.targets.image import open_image
from kinst.targets.manifest import Manifest, find_manifest
from kinst.targets.standalone import Standalone
from tests.runtime.readout.qemu import emulator
from tests.samples.machines import MACHINES

STANDALONE = ("riscv64",)  # machines that have trampolines for it
PLACES = {"amd64": 0x10_0000, "arm64": 0x4008_0000, "riscv64": 0x8000_0000}  # where their RAM has the sample kernel
ALL = """
fbt::: { @hits[probefunc, probename] = count(); }
END { printa("%s:%s %@d\\n", @hits); }
"""

REFUSED = {
    "{ }": ("it records that its probe fired", "record"),
    "{ @ = quantize(arg0); }": ("@ is no count()", "record:arg0"),
    "/arg1 > timestamp/ { @ = count(); }": (
        "its predicate depends on more than the probe and the CPU",
        "record:arg1,time",
    ),
    '{ printf("%d", regs[R_A5]); }': ("it does more than to aggregate", "record:a5"),
}


@dataclass(frozen=True, slots=True)
class Ran:
    """A standalone sample kernel, and its memory when it was about to switch itself off."""

    machine: str
    image: Path
    manifest: Manifest
    kept: Standalone
    core: Path
    raw: Path
    told: str  # what the summary told through QEMU's stub

    @property
    def dump(self) -> str:
        """The memory as --read takes it."""
        return f"{self.raw}@{PLACES[self.machine]:#x}"


def kinst_run(*words: object) -> Result:
    return CliRunner().invoke(run, [str(word) for word in words], prog_name="kinst-run")


def standalone(machine: str, folder: Path, *words: str) -> Path:
    """The sample kernel, standalone."""
    image = folder / f"standalone-{machine}.elf"
    words = ("--standalone", *(words or ("--probe", "fbt:::")), "-o", str(image))
    result = CliRunner().invoke(rewrite, [str(MACHINES[machine].image), *words])
    assert result.exit_code == 0, result.output
    return image


@pytest.fixture(scope="module", params=STANDALONE)
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    machine, folder = request.param, tmp_path_factory.mktemp("counted")
    path = standalone(machine, folder)
    image = open_image(path)
    manifest, end = find_manifest(image), image.symbols.address_of("power_off")
    assert manifest is not None and manifest.standalone is not None and end is not None
    with emulator(machine, folder, "-kernel", str(path), "-S") as qemu:
        qemu.run_to(end)
        core, raw = qemu.dump(), qemu.save(PLACES[machine], 2 << 20)
        told = kinst_run(path, "--read", qemu.source)
        assert (told.exit_code, told.stderr) == (0, "")
        yield Ran(machine, path, manifest, manifest.standalone, core, raw, told.stdout)


def hits(text: str) -> dict[str, int]:
    """What ALL printed, behind the console if there is one."""
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line.count(":") == 1)
    return {name: int(count) for name, count in pairs if count.isdigit()}


def test_counts_are_those_of_a_traced_run(counted: Ran) -> None:
    """The kernel does the same under QEMU as here."""
    probed = {":".join(counted.manifest.probe_fields(row)[2:]) for row in range(len(counted.manifest.probes))}
    here = kinst_run(MACHINES[counted.machine].image, "-qn", ALL, "--console", "/dev/null")
    assert len(probed) > 50
    wanted = {name: count for name, count in hits(here.stdout).items() if name in probed - {"power_off:entry"}}
    assert sum(wanted.values()) > 1000
    assert hits(kinst_run(counted.image, "--read", counted.core, "-qn", ALL).stdout) == wanted
    assert hits(kinst_run(counted.image, "--read", counted.dump, "-qn", ALL).stdout) == wanted
    table = [line.split() for line in counted.told.splitlines() if line]
    assert {":".join(name.split(":")[2:]): int(count) for count, name in table} == wanted
    assert [int(count) for count, _ in table] == sorted(wanted.values(), reverse=True)


def test_a_clause_that_looks_at_a_hit_is_refused_with_what_would_keep_it(counted: Ran) -> None:
    for body, why in REFUSED.items():
        result = kinst_run(counted.image, "--read", counted.core, "-n", f"fbt::kmalloc:entry {body}")
        assert result.exit_code == 1
        assert result.stdout == ""
        remedy = f"kinst-rewrite --standalone --action {why[1]} keeps it"
        assert result.stderr == f"kinst-run: fbt::kmalloc:entry: {why[0]}, and the image only counts: {remedy}\n"


@pytest.mark.parametrize("what", ["execname", "pid", "stack()", "ustack(3)", "caller", "uregs[0]"])
def test_what_no_image_keeps_is_refused(counted: Ran, what: str) -> None:
    result = kinst_run(counted.image, "--read", counted.core, "-n", f"fbt::kmalloc:entry {{ @[{what}] = count(); }}")
    name = re.sub(r"(?<=[(\[])\d", "", what)
    assert result.exit_code == 1
    assert result.stderr == f"kinst-run: fbt::kmalloc:entry: no image records {name}\n"


WRONG = {
    ("{original}", "--read", "{core}"): "{original}: is not standalone, and keeps nothing: kinst-rewrite --standalone",
    ("{image}", "--read", "{original}"): "--read {original}: no core: e_type is 2 and not 4",
    ("{image}", "--read", "{raw}"): "--read {raw}: no ELF core: --read takes a core, FILE@ADDRESS for bytes of memory,",
    ("{image}", "--read", "{raw}.no@0"): "--read {raw}.no@0: cannot be read: No such file or directory",
    ("{image}", "--read", "gdb:1234"): "--read gdb:1234: gdb:HOST:PORT, for example gdb:localhost:1234",
    ("{image}", "--read", "gdb:localhost:99999"): "--read gdb:localhost:99999: gdb:HOST:PORT, for example",
    ("{image}", "--read", "{core}", "--every", "1s"): "--every 1s: a file stays as it is: it is for --read gdb:HOST:",
    ("{image}", "--every", "1s"): "--every: there is nothing to read again: give --read",
    ("{image}", "--read", "{core}", "--append", "x"): "--read runs nothing: --append is for an image that runs",
    ("--read", "{core}", "-n", "BEGIN"): "--read: give the standalone IMAGE whose memory it is",
    ("{image}", "--read", "{short}@{place}"): "{image}: is not in this memory: {short}: has ",
    (
        "{image}",
        "--read",
        "{other}@{place}",
    ): "{image}: is not in this memory: other bytes than its trampolines are at ",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_read_is_told_in_one_line(counted: Ran, words: tuple[str, ...], tmp_path: Path) -> None:
    short, other = tmp_path / "short", tmp_path / "other"
    short.write_bytes(counted.raw.read_bytes()[:4096])
    other.write_bytes(bytes(2 << 20))
    files = {"image": counted.image, "original": MACHINES[counted.machine].image, "core": counted.core}
    known = {**files, "raw": counted.raw, "short": short, "other": other, "place": hex(PLACES[counted.machine])}
    result = kinst_run(*(word.format(**known) for word in words))
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"kinst-run: {WRONG[words].format(**known)}")


def test_the_cells_alone_are_enough(counted: Ran, tmp_path: Path) -> None:
    """Then nobody can tell whose they are."""
    kept, cells = counted.kept, tmp_path / "cells"
    start = kept.load_address - PLACES[counted.machine]
    cells.write_bytes(counted.raw.read_bytes()[start : start + kept.size])
    assert kinst_run(counted.image, "--read", f"{cells}@{kept.load_address:#x}").stdout == counted.told


def test_an_image_that_was_moved_is_found_in_a_dump(counted: Ran) -> None:
    """As Linux is under KASLR, or firmware that copies itself."""
    assert kinst_run(counted.image, "--read", f"{counted.raw}@0x12340000").stdout == counted.told
