"""Real images with every instruction of every function probed: the contract, binutils and gdb, and the way back."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kinst.rewriter.diffing.diff import compare
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.restore import restore
from kinst.rewriter.writing.write import write_image
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.probe import parse_probe_names
from tests.contract import check_contract
from tests.gated import long_where
from tests.images import SMALL, real_image

UNSUPPORTED = {"u-boot-arm32", "u-boot-mips64", "u-boot-ppc"}
IMAGES = sorted(SMALL.keys() - UNSUPPORTED)
# The objdump of the machine; Debian's cross binutils, or the native one.
OBJDUMP = {
    "amd64": "x86_64-linux-gnu-objdump",
    "arm64": "aarch64-linux-gnu-objdump",
    "riscv64": "riscv64-linux-gnu-objdump",
}


# Each machine, with and without relocations, firmware and kernels.
GATED = ("gnumach", "opensbi-1.6", "u-boot-arm64")


@pytest.fixture(scope="module", params=long_where(IMAGES, lambda name: name not in GATED))
def patched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Manifest]:
    """(original, patched with every probe there is and with symbols of trampolines, manifest)."""
    original = real_image(request.param)
    out = tmp_path_factory.mktemp(request.param) / "p.elf"
    plan = plan_probes(open_source(Source(original)), parse_probe_names("*:::"))[1]
    return original, out, write_image(plan, out, trampoline_symbols=True)


def run(tool: str, *arguments: str) -> tuple[str, str]:
    """stdout and stderr of a tool, which must succeed."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: binutils and gdb are the judges here")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def complaints(text: str, path: Path) -> set[str]:
    """Warnings of a tool without the file's name and without numbers: those an original has too are its own."""
    return {re.sub(r"0x[0-9a-f]+|\d+", "N", line.replace(str(path), "FILE")) for line in text.splitlines() if line}


def test_the_contract_holds_and_most_instructions_are_probed(patched: tuple[Path, Path, Manifest]) -> None:
    original, out, manifest = patched
    sites = check_contract(original.read_bytes(), out.read_bytes())
    assert len(sites) == len(manifest.sites) > 10_000


def test_the_difference_is_explained(patched: tuple[Path, Path, Manifest]) -> None:
    original, out, _ = patched
    found = compare(open_image(original), open_image(out))
    assert found.is_explained, found.unexplained[:3]


def test_restoring_gives_the_same_file(patched: tuple[Path, Path, Manifest], tmp_path: Path) -> None:
    original, out, manifest = patched
    restore(open_image(out), manifest, tmp_path / "back.elf")
    assert (tmp_path / "back.elf").read_bytes() == original.read_bytes()


@pytest.mark.parametrize("patched", long_where(IMAGES, lambda name: name != "opensbi-1.6"), indirect=True)
def test_rewriting_again_in_two_steps_gives_the_original_back(
    patched: tuple[Path, Path, Manifest], tmp_path: Path
) -> None:
    original, _, whole = patched
    first, second = tmp_path / "1.elf", tmp_path / "2.elf"
    for source, out, spec in ((original, first, "fbt:::entry"), (first, second, "kinst:::,fbt:::")):
        write_image(plan_probes(open_source(Source(source)), parse_probe_names(spec))[1], out)
    manifest = find_manifest(open_image(second))
    assert manifest is not None and len(manifest.sites) == len(whole.sites)
    assert len(manifest.probes) == len(whole.probes)
    check_contract(original.read_bytes(), second.read_bytes())
    restore(open_image(second), manifest, tmp_path / "back.elf")
    assert (tmp_path / "back.elf").read_bytes() == original.read_bytes()


def test_readelf_has_no_more_to_say_than_of_the_original(patched: tuple[Path, Path, Manifest]) -> None:
    original, out, manifest = patched
    before, after = (
        run("readelf", "--headers", "--notes", "--dynamic", "--symbols", "-W", str(p)) for p in (original, out)
    )
    assert complaints(after[1], out) <= complaints(before[1], original)
    address, size = manifest.trampolines
    assert re.search(rf"LOAD +0x[0-9a-f]+ 0x{address:016x} .* R E ", after[0])
    assert re.search(rf"\.kinst\.text +PROGBITS +{address:016x} [0-9a-f]+ {size:06x} ", after[0])


def test_objdump_disassembles_the_trampolines_by_name(patched: tuple[Path, Path, Manifest]) -> None:
    _, out, manifest = patched
    row = len(manifest.sites) // 2
    start = int(manifest.sites["trampoline"][row])
    limits = (f"--start-address={start:#x}", f"--stop-address={start + 8:#x}")
    text, errors = run(OBJDUMP[manifest.arch], "-d", "-j", ".kinst.text", *limits, str(out))
    function = int(manifest.sites["function"][row])
    offset = int(manifest.sites["address"][row]) - int(manifest.functions["address"][function])
    assert f"<kinst${manifest.function_name(function)}+{offset}>:" in text
    assert not errors


def test_gdb_reads_it_and_disassembles_a_patched_function(patched: tuple[Path, Path, Manifest]) -> None:
    original, out, manifest = patched
    row = len(manifest.sites) // 2
    address, slot = int(manifest.sites["address"][row]), int(manifest.sites["trampoline"][row])
    commands = ("-ex", f"x/1i {address:#x}", "-ex", f"x/1i {slot:#x}", "-ex", "info files")
    text, errors = run("gdb-multiarch", "-nx", "-batch", *commands, str(out))
    assert re.search(rf"{address:#x}.*:\s+(int3|brk|ebreak|c\.ebreak)", text), text[:400]
    assert "is .kinst.text" in text
    assert complaints(errors, out) <= complaints(run("gdb-multiarch", "-nx", "-batch", str(original))[1], original)


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_images_of_other_machines_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(ImageError, match=r"32-bit|big-endian|not supported|MIPS|PowerPC|ARM"):
        open_source(Source(real_image(name)))
