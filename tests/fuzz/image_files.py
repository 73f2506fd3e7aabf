"""Files that are no ELF files, damaged, and manifests beside them: read, patched, compared and restored."""

import gzip
import lzma
import struct
import tempfile
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from hypothesis import strategies as st

from kinst.rewriter.cli import diff as kinst_diff
from kinst.rewriter.cli import list_probes as kinst_list
from kinst.rewriter.cli import rewrite as kinst_rewrite
from kinst.runtime.cli import run as kinst_run
from kinst.targets.errors import KinstError
from kinst.targets.packed.beside import path_beside
from kinst.targets.packed.container import contained
from kinst.targets.packed.reading import Reading
from kinst.targets.packed.unpacking import unpacked
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Kind, command
from tests.targets.packed.test_android import boot, vendor
from tests.targets.packed.test_cbfs import rom
from tests.targets.packed.test_firmware_volume import LZMA, PE, VOLUME, file, guided, named, section, volume
from tests.targets.packed.test_pe_image import pe
from tests.targets.packed.test_u_boot import FIRMWARE, fit, uimage

_CODE: Final = bytes.fromhex("fd7bbfa9 fd030091 fd7bc1a8 c0035fd6") * 8
_BASE: Final = 0x4020_0000
_RAW: Final = ("--raw", f"arm64@{_BASE:#x}")
_CODE_RANGE: Final = ("--force-code", f"{_BASE:#x}-{_BASE + 16:#x}")

# -- containers -------------------------------------------------------------------------------------------------------


def _packed_volume() -> bytes:
    return lzma.compress(section(VOLUME, volume(file(section(PE, pe())), size=0x1000)), lzma.FORMAT_ALONE)


@cache
def _files() -> tuple[bytes, ...]:
    placed = FIRMWARE | {"load": _BASE}
    behind = placed | {"data-offset": 0, "data-size": len(_CODE)}
    parts = struct.pack(">3I", len(_CODE), 3, 0) + _CODE + b"abc\0"
    return (
        fit({"a": placed | {"data": _CODE}, "b": placed | {"data": _CODE}}, default="a"),
        fit({"a": behind}, default="a", behind=_CODE),
        fit({"a": placed | {"compression": "gzip", "data": gzip.compress(_CODE, mtime=0)}}),
        uimage(_CODE),
        uimage(gzip.compress(_CODE, mtime=0), compression=1),
        uimage(parts, kind=4),
        pe(),
        boot(3, uimage(_CODE), b"disk"),
        vendor(2048, _CODE, _CODE),
        volume(file(named("b"), section(PE, pe())), file(guided(LZMA, _packed_volume())), size=0x2000),
        rom()[:0x400],
    )


def _containers(damage: Damage, folder: Path) -> None:
    data = _files()[damage.base]
    _all_commands(folder, damage.of(data, [range(len(data))]))


def _read(data: bytes, reading: Reading) -> None:
    """What is read is written again: of the same content it is the same file, but for sums that were wrong."""
    with suppress(KinstError):
        found = unpacked(np.frombuffer(data, np.uint8), reading)
        if found.rebuild is not None:
            again = found.rebuild(found.data)
            assert found.rebuild(unpacked(np.frombuffer(again, np.uint8), reading).data) == again


def _all_commands(folder: Path, data: bytes, *words: str) -> None:
    """Each reads the file, or says in one line why not; what was patched is explained, and comes back."""
    for payload in ("", "b", "fallback/payload", "fallback/ramstage"):
        _read(data, Reading("arm64" if words or payload else "", payload=payload))
    if zlib.crc32(data) % 32:  # they take a hundred times as long
        return
    image, patched, back = folder / "image.bin", folder / "patched.bin", folder / "back.bin"
    image.write_bytes(data)
    command(kinst_list, image, *words, "fbt:::")
    command(kinst_rewrite, image, *words, "--probe", "kinst:::,fbt:::", "-o", patched)
    if patched.exists():
        assert command(kinst_diff, image, patched).exit_code == 0
        command(kinst_rewrite, "--restore", patched, "-o", back)
        assert back.read_bytes() == data
    if zlib.crc32(data) % 512 == 0:
        command(kinst_run, image, *words, "--clock", "icount", "--timeout", "10us")


# -- lines of hex digits ----------------------------------------------------------------------------------------------

_LINE = st.tuples(
    st.integers(0, 9),
    st.one_of(st.sampled_from((0, 1, _BASE, _BASE + 16, 0xFFFF, 0xFFFF_FFF8, 0xFFFF_FFFF)), st.integers(0, 1 << 32)),
    st.one_of(
        st.just(_CODE[:16]), st.binary(max_size=20), st.sampled_from((b"\x40\x20", b"\x40\x20\0\0", b"\xff\xff"))
    ),
)
_LINES = st.tuples(st.booleans(), st.lists(_LINE, max_size=12), st.sampled_from(("\n", "\r\n", "\n\n", " \n", "\n;\n")))


def _hex(kind: int, address: int, data: bytes) -> str:
    content = bytes([len(data)]) + (address & 0xFFFF).to_bytes(2, "big") + bytes([kind % 7]) + data
    return f":{content.hex()}{-sum(content) & 0xFF:02x}"


def _s(kind: int, address: int, data: bytes) -> str:
    width = (2, 2, 3, 4, 2, 2, 3, 4, 3, 2)[kind]
    content = bytes([width + len(data) + 1]) + (address & (1 << 8 * width) - 1).to_bytes(width, "big") + data
    return f"S{kind}{content.hex().upper()}{~sum(content) & 0xFF:02X}"


def _lines(drawn: tuple[bool, list[tuple[int, int, bytes]], str], folder: Path) -> None:
    """Sums are right: a wrong one ends it all."""
    is_hex, lines, newline = drawn
    first = [(4, 0, b"\x40\x20")] if is_hex else [(0, 0, b"name")]
    text = newline.join((_hex if is_hex else _s)(*line) for line in [*first, *lines])
    _all_commands(folder, text.encode(), "--raw", "arm64")


# -- manifests beside files -------------------------------------------------------------------------------------------


@cache
def _patched() -> tuple[bytes, bytes, bytes]:
    with tempfile.TemporaryDirectory() as name:
        image, patched = Path(name) / "first.bin", Path(name) / "first.kinst.bin"
        image.write_bytes(_CODE)
        done = command(kinst_rewrite, image, *_RAW, *_CODE_RANGE, "--probe", "fbt:::", "-o", patched)
        assert done.exit_code == 0, done.stderr
        return _CODE, patched.read_bytes(), path_beside(patched).read_bytes()


def _manifests(damage: Damage, folder: Path) -> None:
    original, content, manifest = _patched()
    image, patched, back = folder / "image.bin", folder / "patched.bin", folder / "back.bin"
    head = 16 + int.from_bytes(manifest[12:16], "little")
    is_file = damage.base == 1
    patched.write_bytes(damage.of(content, [range(len(content))]) if is_file else content)
    path_beside(patched).write_bytes(manifest if is_file else damage.of(manifest, [range(head), range(len(manifest))]))
    with suppress(KinstError):
        contained(patched)
    if zlib.crc32(repr(damage).encode()) % 32:
        return
    image.write_bytes(original)
    command(kinst_list, patched, "fbt:::")
    command(kinst_diff, image, patched)
    command(kinst_rewrite, "--restore", patched, "-o", back)
    assert not back.exists() or back.read_bytes() == original
    command(kinst_run, "-l", patched, "-n", "fbt:::")


IMAGE_FILES: Final = Kind("image-files", damages(11), _containers)
HEX_LINES: Final = Kind("hex-lines", _LINES, _lines)
BESIDE: Final = Kind("beside", damages(2), _manifests)
