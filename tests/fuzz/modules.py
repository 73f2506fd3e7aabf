"""Kernel modules (.ko) that are damaged or forged, patched ones among them, given to every command that reads them."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from kinst.rewriter.cli import diff as kinst_diff
from kinst.rewriter.cli import list_probes as kinst_list
from kinst.rewriter.cli import rewrite as kinst_rewrite
from kinst.runtime.cli import run as kinst_run
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import SECTION
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.images import sealed_again
from tests.fuzz.kind import Kind, command
from tests.rewriter import test_modules as writing

_SAMPLES: Final = Path(__file__).parent.parent.parent / "samples"
_MACHINES: Final = ("amd64", "arm64", "riscv64")
_LOADED: Final = (".text", ".data")  # what is not damaged: code and data of any content are no damage


@cache
def _module(machine: str) -> bytes | None:
    """A module as a compiler makes it; None: there is no compiler."""
    with tempfile.TemporaryDirectory() as name:
        try:
            path = writing.compiled(Path(name), machine)
        except (pytest.skip.Exception, subprocess.CalledProcessError):
            return None
        return path.read_bytes()


@cache
def _patched(machine: str) -> bytes | None:
    data = _module(machine)
    if data is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        plain, patched = Path(name, "module.ko"), Path(name, "patched.ko")
        plain.write_bytes(data)
        command(kinst_rewrite, plain, "--probe", "fbt:::,kinst:::", "-o", patched)
        return patched.read_bytes()


def _places(data: bytes) -> list[range]:
    """The header, the table of sections, and what no segment would load: names, symbols, relocations, the manifest."""
    with tempfile.NamedTemporaryFile(suffix=".ko") as file:
        file.write(data)
        file.flush()
        image = open_image(Path(file.name))
    start, count = int.from_bytes(data[40:48], "little"), int.from_bytes(data[60:62], "little")
    found = [one for one in image.sections if one.size and one.kind != 8 and not one.name.startswith(_LOADED)]
    parts = [range(one.offset, one.offset + one.size) for one in found]
    return [range(64), range(start, start + 64 * count), *(part for part in parts if part.stop <= len(data))]


@cache
def _places_of(machine: str, *, is_patched: bool) -> list[range]:
    data = _patched(machine) if is_patched else _module(machine)
    assert data is not None
    return _places(data)


def _damaged(damage: Damage) -> bytes | None:
    """Damaged; of patched ones half with digests that are right again."""
    machine, is_patched = _MACHINES[damage.base % 3], damage.base >= len(_MACHINES)
    data = _patched(machine) if is_patched else _module(machine)
    if data is None:
        return None
    changed = bytearray(damage.of(data, _places_of(machine, is_patched=is_patched)))
    if is_patched and damage.changes[0][2] & 1 and len(changed) == len(data):
        start, size = _manifest(machine)
        changed[start : start + size] = sealed_again(bytes(changed[start : start + size]))
    return bytes(changed)


@cache
def _manifest(machine: str) -> tuple[int, int]:
    data = _patched(machine)
    assert data is not None
    with tempfile.NamedTemporaryFile(suffix=".ko") as file:
        file.write(data)
        file.flush()
        section = open_image(Path(file.name)).section(SECTION)
    assert section is not None
    return section.offset, section.size


def _run(damage: Damage, folder: Path) -> None:
    data = _damaged(damage)
    if data is None:
        return
    machine = _MACHINES[damage.base % 3]
    module, patched, back = folder / "module.ko", folder / "patched.ko", folder / "back.ko"
    module.write_bytes(data)
    command(kinst_list, module, "fbt:::")
    command(kinst_rewrite, module, "--probe", "kinst:::,fbt:::", "-o", patched)
    if patched.exists():
        command(kinst_diff, module, patched)
        command(kinst_rewrite, "--restore", patched, "-o", back)
    if damage.changes[0][0] % 4 == 0:  # these take ten times as long
        kernel, limits = _SAMPLES / f"kernel-{machine}.elf", ("--clock", "icount", "--timeout", "10us")
        given = patched if patched.exists() and damage.changes[0][0] & 4 else module
        command(kinst_run, kernel, *limits, "--module", f"mod={given}", "-qn", "fbt:mod:: { @ = count(); }")


MODULES: Final = Kind("modules", damages(2 * len(_MACHINES)), _run)
