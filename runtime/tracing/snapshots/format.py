"""The file of a snapshot: a header, and the pages of RAM that are not empty.

    magic 8, version 4, bytes of the header 4, digest of the header 32
    the header, JSON compressed by zstd
    the pages, one after the other, as one frame of zstd

The header says what the machine is, what its CPUs and devices hold, which pages follow, and the digest of these. A
file may be anybody's: what it says is checked before anything is believed, and nothing in it is ever executed.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

from kinst.targets.compression import zstd_content, zstd_frame
from kinst.targets.errors import KinstError
from kinst.targets.values import dataclass

MAGIC: Final = b"kinstsna"
VERSION: Final = 1
PAGE: Final = 4096
_HEAD: Final = struct.Struct("<8sII32s")
_MOST_HEADER: Final = 64 << 20  # bytes, compressed
_MOST_TEXT: Final = 512 << 20  # bytes of JSON
_MOST_CPUS: Final = 512
_MOST_RAM: Final = 1 << 40


class SnapshotError(KinstError):
    """A file that is no snapshot, is damaged, or is of another machine or image."""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """A disk of the machine: the digest and the size of its file, and whether the guest may write to its copy."""

    name: str
    size: int
    digest: str
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What a machine must be like to continue from a snapshot."""

    image: str  # the name of its file
    digest: str  # SHA-256 of that file
    machine: str
    cpus: int
    memory: int  # bytes of RAM
    clock: str
    kaslr_seed: int | None
    rng_seed: int | None
    has_virtio_console: bool
    disks: tuple[DiskFacts, ...]
    emulator: str  # whose release decides what a CPU's state looks like


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says before the pages.

    `state`: as `encoding.state_text` makes it, unchecked. `regions`: base and size of the parts of RAM, in their order.
    `runs`: first and number of pages that follow each other, numbered through all parts. `pages`: the digest of all
    pages. `copies`: how far copies of the image's code are from it, in bytes.
    """

    facts: Facts
    state: Mapping[str, Any]
    regions: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int], ...]
    pages: str
    copies: tuple[int, ...]
    time: int

    @property
    def size(self) -> int:
        """Bytes of all RAM."""
        return sum(size for _, size in self.regions)

    @property
    def page_count(self) -> int:
        """How many pages follow."""
        return sum(count for _, count in self.runs)

    @property
    def key(self) -> str:
        """What tells its RAM from any other: 64 digits."""
        text = json.dumps([self.regions, self.runs, self.pages])
        return hashlib.sha256(text.encode()).hexdigest()


def write_header(file: BinaryIO, header: Header) -> None:
    """Write the part before the pages. Raises OSError."""
    content = zstd_frame(memoryview(json.dumps(asdict(header)).encode()))
    file.write(_HEAD.pack(MAGIC, VERSION, len(content), hashlib.sha256(content).digest()))
    file.write(content)


def read_header(path: Path, file: BinaryIO) -> Header:
    """Read it; the file is at the pages then. Raises SnapshotError."""
    head = file.read(_HEAD.size)
    if not head.startswith(MAGIC):
        raise SnapshotError(f"{path}: is not a snapshot of kinst-run")
    if len(head) < _HEAD.size:
        raise SnapshotError(f"{path}: is cut short")
    _, version, size, digest = _HEAD.unpack(head)
    if version != VERSION:
        raise SnapshotError(
            f"{path}: is a snapshot of format {version}, and this release reads {VERSION}: take it anew"
        )
    content = file.read(size) if size <= _MOST_HEADER else b""
    if len(content) != size:
        raise SnapshotError(f"{path}: is cut short")
    if hashlib.sha256(content).digest() != digest:
        raise SnapshotError(f"{path}: is damaged: its header is not what was written")
    try:
        return _header(json.loads(zstd_content(memoryview(content), _MOST_TEXT)))
    except (ValueError, KeyError, TypeError, RecursionError, KinstError) as error:
        raise SnapshotError(f"{path}: is damaged: {_shortened(error)}") from None


def _shortened(error: Exception) -> str:
    text = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    return text.splitlines()[0][:200] if text else type(error).__name__


def _header(read: Any) -> Header:
    regions = tuple((_number(base), _number(size)) for base, size in read["regions"])
    _check(all(not base % PAGE and not size % PAGE and size for base, size in regions), "a region of RAM")
    _check(sum(size for _, size in regions) <= _MOST_RAM, "the size of RAM")
    runs = tuple((_number(first), _number(count)) for first, count in read["runs"])
    end = sum(size for _, size in regions) // PAGE
    _check(all(first + count <= end and count for first, count in runs), "the pages of RAM")
    _check(all(one[0] + one[1] <= two[0] for one, two in pairwise(runs)), "the order of pages")
    _check(isinstance(read["state"], dict), "the state")
    return Header(
        facts=_facts(read["facts"]),
        state=read["state"],
        regions=regions,
        runs=runs,
        pages=_text(read["pages"]),
        copies=tuple(_signed(one) for one in read["copies"]),
        time=_number(read["time"]),
    )


def _facts(read: Any) -> Facts:
    _check(1 <= _number(read["cpus"]) <= _MOST_CPUS, "the number of CPUs")
    return Facts(
        image=_text(read["image"]),
        digest=_text(read["digest"]),
        machine=_text(read["machine"]),
        cpus=_number(read["cpus"]),
        memory=_number(read["memory"]),
        clock=_text(read["clock"]),
        kaslr_seed=None if read["kaslr_seed"] is None else _number(read["kaslr_seed"]),
        rng_seed=None if read["rng_seed"] is None else _number(read["rng_seed"]),
        emulator=_text(read["emulator"]),
        has_virtio_console=bool(read["has_virtio_console"]),
        disks=tuple(_disk(one) for one in read["disks"]),
    )


def _disk(read: Any) -> DiskFacts:
    return DiskFacts(_text(read["name"]), _number(read["size"]), _text(read["digest"]), bool(read["is_read_only"]))


def _text(value: Any) -> str:
    _check(isinstance(value, str) and len(value) < PAGE, "a text")
    return str(value)


def _number(value: Any) -> int:
    _check(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64, "a number")
    return int(value)


def _signed(value: Any) -> int:
    _check(isinstance(value, int) and abs(value) < 1 << 64, "a distance")
    return int(value)


def _check(is_right: bool, what: str) -> None:  # noqa: FBT001 - what is checked
    if not is_right:
        raise ValueError(f"{what} is not what it can be")
