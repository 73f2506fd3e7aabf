"""FIT and legacy images: as mkimage makes them, or in memory; what is in them, and what dumpimage reads once they are
patched."""

import bz2
import gzip
import hashlib
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.targets.errors import ImageError
from kinst.targets.packed.memory import memory_of
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.packed.unpacking import Unpacked, unpacked
from tests.commands.in_process import command, kinst_run
from tests.targets.packed.test_raw import SAMPLES, map_of
from tests.writers.flat_images import flat_image

CODE = bytes(range(64))
FIRMWARE: dict[str, int | str | bytes] = {
    "type": "firmware",
    "arch": "arm64",
    "compression": "none",
    "load": 0x4000_0000,
}


def fit(images: Mapping[str, Mapping[str, int | str | bytes]], default: str = "", behind: bytes = b"") -> bytes:
    """A FIT image; each image with `hash-1` of SHA-256 and `hash-2` of CRC-32 if its data are in it."""
    root = Node("", {"description": "of a test", "#address-cells": 1})
    nodes, configurations = root.add("images", {}), root.add("configurations", {"default": "one"})
    configurations.add("one", {"firmware": default} if default else {})
    for name, properties in images.items():
        node, data = nodes.add(name, properties), properties.get("data")
        if isinstance(data, bytes):
            node.add("hash-1", {"algo": "sha256", "value": hashlib.sha256(data).digest()})
            node.add("hash-2", {"algo": "crc32", "value": struct.pack(">I", zlib.crc32(data))})
    blob = flatten(root)
    return blob + bytes(-len(blob) % 4) + behind


def read(data: bytes, reading: Reading = AS_IT_SAYS) -> Unpacked:
    return unpacked(np.frombuffer(data, np.uint8), reading)


def memory(found: Unpacked) -> list[tuple[int, bytes]]:
    return [(span.address, span.data.tobytes()) for span in memory_of(found.data)]


def changed(found: Unpacked) -> bytes:
    """The file with another first byte of memory."""
    assert found.rebuild is not None
    elf = found.data.copy()
    memory_of(elf)[0].data[0] ^= 0xFF
    return found.rebuild(elf)


def uimage(data: bytes, *, arch: int = 22, kind: int = 5, compression: int = 0) -> bytes:
    head = struct.pack(">7I4B32s", 0x27051956, 0, 7, len(data), 0x4000_0000, 0x4000_0008, zlib.crc32(data),
                       5, arch, kind, compression, b"firmware")  # fmt: skip
    return head[:4] + struct.pack(">I", zlib.crc32(head)) + head[8:] + data


def test_the_payload_that_is_meant_is_taken() -> None:
    images = {"a": FIRMWARE | {"data": CODE}, "b": FIRMWARE | {"load": 0x5000_0000, "entry": 0x5000_0004, "data": CODE}}
    images["tree"] = {"type": "flat_dt", "data": b"x"}
    found = read(fit(images, default="b"))
    assert (found.packing, memory(found)) == ("FIT image (b)", [(0x5000_0000, CODE)])
    assert int.from_bytes(found.data[24:32].tobytes(), "little") == 0x5000_0004
    assert memory(read(fit(images, default="b"), Reading(payload="a"))) == [(0x4000_0000, CODE)]
    with pytest.raises(
        ImageError, match=re.escape("--payload: there are a (firmware, arm64, 0x40000000), b (firmware,")
    ):
        read(fit(images))
    with pytest.raises(ImageError, match=r"--payload c: there are a .*, tree \(flat_dt\)"):
        read(fit(images), Reading(payload="c"))
    with pytest.raises(ImageError, match=r"tree \(flat_dt\): is not for one of our machines"):
        read(fit(images), Reading(payload="tree"))


def test_a_patched_payload_has_its_hashes() -> None:
    whole = fit({"a": FIRMWARE | {"data": CODE}, "z": {"type": "flat_dt", "data": b"tree"}})
    new = bytes([CODE[0] ^ 0xFF]) + CODE[1:]
    found = changed(read(whole))
    assert found == fit({"a": FIRMWARE | {"data": new}, "z": {"type": "flat_dt", "data": b"tree"}})


def test_a_longer_payload_moves_what_is_behind() -> None:
    longer = FIRMWARE | {"data": CODE + bytes(0x1001)}
    found = read(fit({"a": longer, "z": {"type": "flat_dt", "data": b"tree"}}))
    short = read(fit({"a": FIRMWARE | {"data": CODE}, "z": {"type": "flat_dt", "data": b"tree"}}))
    assert short.rebuild is not None
    assert short.rebuild(found.data) == fit({"a": longer, "z": {"type": "flat_dt", "data": b"tree"}})


@pytest.mark.parametrize("place", ["data-offset", "data-position"])
def test_data_behind_the_tree_stay_where_others_are_behind_them(place: str) -> None:
    def whole(at: int, size: int, behind: bytes) -> bytes:
        return fit({"a": FIRMWARE | {place: at, "data-size": size}}, behind=behind)

    start = len(whole(0, 0, b"")) if place == "data-position" else 0
    data = whole(start, len(CODE), CODE + b"other")
    found = read(data)
    assert memory(found) == [(0x4000_0000, CODE)]
    assert changed(found) == whole(start, len(CODE), bytes([0xFF]) + CODE[1:] + b"other")
    assert found.rebuild is not None
    more = CODE + b"more"
    longer = read(fit({"a": FIRMWARE | {"data": more}}))
    assert found.rebuild(longer.data) == whole(start + 72, len(more), CODE + b"other" + bytes(3) + more)


def test_gzip_is_made_again_and_nothing_else() -> None:
    packed = gzip.compress(CODE, mtime=0)
    whole = fit({"a": FIRMWARE | {"compression": "gzip", "data": packed}})
    found = read(whole)
    assert (found.packing, memory(found)) == ("FIT image (a), gzip", [(0x4000_0000, CODE)])
    assert memory(read(changed(found))) == [(0x4000_0000, bytes([0xFF]) + CODE[1:])]
    whole = fit({"a": FIRMWARE | {"compression": "bzip2", "data": bz2.compress(CODE)}})
    with pytest.raises(ImageError, match=r"a is compressed \(bzip2\), and only gzip is written"):
        changed(read(whole))


def test_a_legacy_image_is_read_and_written() -> None:
    found = read(uimage(CODE))
    assert (found.packing, memory(found)) == ("U-Boot image (0)", [(0x4000_0000, CODE)])
    assert int.from_bytes(found.data[24:32].tobytes(), "little") == 0x4000_0008
    assert changed(found) == uimage(bytes([0xFF]) + CODE[1:])
    assert memory(read(uimage(gzip.compress(CODE), compression=1))) == [(0x4000_0000, CODE)]
    parts = struct.pack(">3I", len(CODE), 3, 0) + CODE + b"abc\0"
    both = read(uimage(parts, kind=4), Reading(payload="0"))
    assert memory(both) == [(0x4000_0000, CODE)]
    with pytest.raises(ImageError, match="one of several files is not written"):
        changed(both)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (flatten(Node("", {"model": "a board"})), "a device tree, and no FIT image"),
        (fit({"a": FIRMWARE | {"data-size": 99, "data-offset": 0}}), "truncated: a of this FIT image has 0x63 bytes"),
        (fit({}), "there is nothing in it"),
        (fit({"a": {"type": "kernel", "arch": "arm64", "data": CODE}}), "does not say where it is loaded"),
        (fit({"a": FIRMWARE | {"arch": "mips", "data": CODE}}), r"name what is meant with --payload: there is a "),
        (fit({"a": FIRMWARE | {"data": CODE}})[:-40], "FIT image: damaged"),
        (uimage(CODE)[:90], "truncated: this U-Boot image has 0x40 bytes"),
        (uimage(CODE)[:60], "truncated: a U-Boot image of 60 bytes"),
        (uimage(CODE, arch=2), r"with --payload: there is 0 \(firmware 'firmware', arm, 0x40000000\)"),
        (uimage(b"\0\0\0\1" * 300, kind=4), "the list of files in this U-Boot image does not end"),
        (uimage(struct.pack(">2I", 99, 0), kind=4), "truncated: file 0 in this U-Boot image"),
        (uimage(b"\x1f\x8b\x08" + CODE, compression=1), "0: damaged"),
    ],
)
def test_what_cannot_be_used_says_why(data: bytes, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        read(data)


def tool(*words: object) -> str:
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"no {words[0]}")
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("external", [pytest.param(False, marks=pytest.mark.long), True])
def test_what_mkimage_makes_is_patched_and_restored(external: bool, tmp_path: Path) -> None:  # noqa: FBT001
    data, start, _ = flat_image(SAMPLES / "kernel-riscv64.elf")
    plain, tree, path, out, back = (tmp_path / name for name in ("k.bin", "k.its", "k.itb", "p.itb", "back.itb"))
    plain.write_bytes(data)
    image = f'data = /incbin/("{plain}"); type = "firmware"; arch = "riscv"; os = "u-boot"; compression = "none"; '
    image += f'load = <{start:#x}>; entry = <{start:#x}>; hash-1 {{ algo = "sha1"; }};'
    other = 'data = /incbin/("/etc/hostname"); type = "flat_dt"; arch = "riscv"; compression = "none";'
    images = f"images {{ k {{ {image} }}; z {{ {other} }}; }};"
    tree.write_text(f'/dts-v1/; / {{ description = "k"; #address-cells = <1>; {images}'
                    f'configurations {{ default = "c"; c {{ firmware = "k"; fdt = "z"; }}; }}; }};')  # fmt: skip
    tool("mkimage", "-f", tree, *(("-E",) if external else ()), path)
    program, names = "fbt::vfs_*:entry { @[probefunc] = count(); }", map_of("riscv64", tmp_path)
    said = kinst_run(SAMPLES / "kernel-riscv64.elf", "-qn", program, "--clock", "icount").stdout
    found = kinst_run(path, "--symbols", names, "-qn", program, "--clock", "icount")
    assert (found.stdout, found.returncode) == (said, 0)
    done = command("rewrite", path, "--symbols", names, "--probe", "fbt::vfs_*:entry", "-o", out)
    assert done.returncode == 0, done.stderr
    assert command("diff", path, out).stdout.endswith("every difference is explained\n")
    assert kinst_run(out, "-qn", program, "--clock", "icount").stdout == said
    listed = tool("dumpimage", "-l", out)
    tool("dumpimage", "-T", "flat_dt", "-p", "0", "-o", plain, out)
    assert hashlib.sha1(plain.read_bytes(), usedforsecurity=False).hexdigest() in listed
    tool("dumpimage", "-T", "flat_dt", "-p", "1", "-o", plain, out)
    assert plain.read_bytes() == Path("/etc/hostname").read_bytes()
    command("rewrite", out, "--restore", "-o", back)
    assert back.read_bytes() == path.read_bytes()
