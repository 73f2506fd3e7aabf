"""ELF files whose headers, manifest or debug information is damaged, given to every command that reads them."""

import hashlib
import struct
import zlib
from functools import cache
from pathlib import Path
from typing import Final

from kinst.rewriter.cli import diff as kinst_diff
from kinst.rewriter.cli import list_probes as kinst_list
from kinst.rewriter.cli import rewrite as kinst_rewrite
from kinst.rewriter.inlining.inlinecall_cli import inlinecall as kinst_inlinecall
from kinst.runtime.cli import run as kinst_run
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import SECTION
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Kind, command
from tests.rewriter.programs import small
from tests.writers.elf import EM_AARCH64, EM_RISCV, Part, Symbol, elf64

_SAMPLES: Final = Path(__file__).parent.parent.parent / "samples"
_MACHINES: Final = ("amd64", "arm64", "riscv64")
_ACTIONS: Final = ("count", "record:arg0,time", "record")
_FREE: Final = (0xFFFF_FFFF_8030_0000, 0x4028_0000, 0x8008_0000)  # where each has nothing
_HEADER: Final = 64  # of the file, and of a section


def _little(machine: int, base: int, code: bytes) -> bytes:
    """Two functions and some data."""
    parts = [Part(".text", base, code * 8, 5), Part(".data", base + 0x1000, b"data" * 8, 6, size=0x200)]
    half = 4 * len(code)
    return elf64(machine, base, parts, [Symbol("first", base, half), Symbol("second", base + half, half)])


@cache
def _plain() -> tuple[bytes, ...]:
    return (
        small().data,
        _little(EM_AARCH64, 0x4020_0000, bytes.fromhex("fd7bbfa9 fd030091 fd7bc1a8 c0035fd6")),
        _little(EM_RISCV, 0x8000_0000, bytes.fromhex("411106e4 a2600800 41018280")),
    )


def _structure(data: bytes) -> list[range]:
    """Headers of the file, of segments and sections, and what no segment loads: symbols and names."""
    start, sections = struct.unpack_from("<QQ", data, 32)
    segments, count = struct.unpack_from("<H", data, 56)[0], struct.unpack_from("<H", data, 60)[0]
    return [range(_HEADER), range(start, start + 56 * segments), range(sections, sections + _HEADER * count)] + [
        range(offset, offset + size)
        for at in range(sections, sections + _HEADER * count, _HEADER)
        for kind, offset, size in [(*struct.unpack_from("<I", data, at + 4), *struct.unpack_from("<QQ", data, at + 24))]
        if kind in (2, 3) and size
    ]


def _headers(damage: Damage, folder: Path) -> None:
    data = _plain()[damage.base]
    image, patched, back = folder / "image.elf", folder / "patched.elf", folder / "back.elf"
    image.write_bytes(damage.of(data, _structure(data)))
    command(kinst_list, image, "fbt:::")
    command(kinst_rewrite, image, "--probe", "kinst:::,fbt:::", "-o", patched)
    if patched.exists():
        command(kinst_diff, image, patched)
        command(kinst_rewrite, "--restore", patched, "-o", back)
        assert back.read_bytes() == image.read_bytes()
    alone = folder / "alone.elf"
    command(kinst_rewrite, image, *_alone(damage.base), "--probe", "fbt:::", "-o", alone)
    if alone.exists():
        command(kinst_diff, image, alone)
    if damage.changes[0][0] % 16 == 0:  # it takes ten times as long
        command(kinst_run, image, "--clock", "icount", "--timeout", "10us")


def _alone(base: int) -> tuple[str, ...]:
    return ("--standalone", "--stays", "--trampoline-base", f"{_FREE[base]:#x}")


# -- manifests --------------------------------------------------------------------------------------------------------


@cache
def _patched(base: int, folder: Path) -> tuple[bytes, range]:
    """A patched image, and where its manifest is. The second half of them are standalone."""
    image, patched = folder / f"plain{base}.elf", folder / f"patched{base}.elf"
    image.write_bytes(_plain()[base % len(_plain())])
    which = base % len(_plain())
    alone = (*_alone(which), "--action", _ACTIONS[which]) if base >= len(_plain()) else ()
    command(kinst_rewrite, image, "--probe", "kinst:::,fbt:::", *alone, "-o", patched)
    section = open_image(patched).section(SECTION)
    assert section is not None
    return patched.read_bytes(), range(section.offset, section.offset + section.size)


def sealed_again(manifest: bytes) -> bytes:
    """With digests that fit, as one would have them who means harm: `kinst.targets.manifest.seal` says how."""
    first, sizes, body = manifest[:12], manifest[16:32], manifest[64:]
    digest = hashlib.sha256(first + sizes + body).digest()
    return first + struct.pack("<I", zlib.crc32(first + sizes + digest + body)) + sizes + digest + body


def _manifests(damage: Damage, folder: Path) -> None:
    """Damaged; three times of four with digests that are right again."""
    data, place = _patched(damage.base, folder.parent)
    changed = bytearray(damage.of(data, [place]))
    if damage.changes[0][2] & 3 and len(changed) == len(data):
        changed[place.start : place.stop] = sealed_again(bytes(changed[place.start : place.stop]))
    image = folder / "image.elf"
    image.write_bytes(changed)
    (folder / "plain.elf").write_bytes(_plain()[damage.base % len(_plain())])
    command(kinst_list, image)
    command(kinst_diff, folder / "plain.elf", image)
    command(kinst_run, image, "--read", f"{image}@0x80000000", "-qn", "fbt:::entry { @[probefunc] = count(); }")
    command(kinst_rewrite, "--restore", image, "-o", folder / "back.elf")
    command(kinst_rewrite, image, "--probe", "fbt:::", "-o", folder / "more.elf")
    command(kinst_run, "-l", image, "-n", "fbt:::")
    if damage.changes[0][0] % 8 == 0:
        command(kinst_run, image, "--clock", "icount", "--timeout", "10us", "-qn", "fbt:::,kinst:::{@ = count()}")


# -- debug information ------------------------------------------------------------------------------------------------


@cache
def _sample(base: int) -> tuple[bytes, list[range]]:
    image = open_image(_SAMPLES / f"kernel-{_MACHINES[base]}.elf")
    sections = [section for section in image.sections if section.name.startswith((".debug_", ".eh_frame"))]
    return image.data.tobytes(), [range(section.offset, section.offset + section.size) for section in sections]


def _dwarf(damage: Damage, folder: Path) -> None:
    image = folder / "image.elf"
    image.write_bytes(damage.of(*_sample(damage.base)))
    command(kinst_inlinecall, "--no-cache", "v2_limits", image)
    command(kinst_run, "-lv", image, "-n", "fbt::if_input:entry")
    command(kinst_run, "-e", image, "-n", "kinst::v2_limits:entry { trace(args[0]->procedure); stack(); }")


HEADERS: Final = Kind("headers", damages(3), _headers)
MANIFESTS: Final = Kind("manifests", damages(6), _manifests)
DWARF: Final = Kind("dwarf", damages(3, most=40), _dwarf)
