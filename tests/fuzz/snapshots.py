"""Snapshots of anybody: files that were right once with bytes changed, and headers with other values and right digests.

Each is read in full. What is believed is run from for a moment: the guest may do anything then, and we nothing wrong.
"""

import base64
import hashlib
import json
import os
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import strategies as st

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.cli import run as kinst_run
from kinst.runtime.machine.snapshots.devices import graph_of
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.snapshots.format import SnapshotError, read_header
from kinst.runtime.tracing.snapshots.reading import checked
from kinst.targets.compression import zstd_content, zstd_frame
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.caches import VALUES, Change, changed
from tests.fuzz.kind import Kind, command

_SAMPLES: Final = Path(__file__).parent.parent.parent / "samples"
_MACHINES: Final = ("amd64", "arm64", "riscv64")
_HEAD: Final = struct.Struct("<8sII32s")
_PATCHES: Final = st.tuples(st.integers(0, 1 << 14), st.sampled_from((0, 1, 2, 7, 0x1F, 0x80, 0xFF)))


@cache
def _file(machine: str) -> bytes:
    """A snapshot of the sample kernel, which has run for a while."""
    with TemporaryDirectory() as folder, open_image(_SAMPLES / f"kernel-{machine}.elf") as image:
        path = Path(folder) / "file"
        trace = image.trace(machine=Machine(clock="icount"))
        trace.run(seconds=0.003)
        trace.snapshot(path)
        trace.close()
        return path.read_bytes()


@cache
def _system(machine: str) -> System:
    """A machine that such a file is checked against."""
    with open_image(_SAMPLES / f"kernel-{machine}.elf") as image:
        guest = image.trace(machine=Machine(clock="icount")).guest
    guest.snapshots.begin()
    return guest.system


def _sealed(machine: str, changes: list[Change], patches: list[tuple[int, int]]) -> bytes:
    """A file whose header says something else, of CPUs byte by byte."""
    data = _file(machine)
    magic, version, size, _ = _HEAD.unpack_from(data)
    content = data[_HEAD.size : _HEAD.size + size]
    header: Any = json.loads(zstd_content(memoryview(content), 1 << 28))
    cpu = header["state"]["cpus"][0][0]
    state = bytearray(base64.b64decode(cpu[1]))
    for at, value in patches:
        state[at % len(state)] = value
    cpu[1] = base64.b64encode(state).decode()
    for path, what in changes:
        header = changed(header, path, what)
    frame = zstd_frame(memoryview(json.dumps(header).encode()))
    head = _HEAD.pack(magic, version, len(frame), hashlib.sha256(frame).digest())
    return head + frame + data[_HEAD.size + size :]


def _read(drawn: tuple[str, Damage | tuple[list[Change], list[tuple[int, int]]]], folder: Path) -> None:
    machine, how = drawn
    os.environ["XDG_CACHE_HOME"] = str(folder)  # in a process of its own
    path = folder / "file"
    if isinstance(how, Damage):
        data = _file(machine)
        path.write_bytes(how.of(data, [range(len(data))]))
    else:
        path.write_bytes(_sealed(machine, *how))
    system = _system(machine)
    try:
        with path.open("rb") as file:
            checked(path, read_header(path, file), system, graph_of(system))
    except SnapshotError:
        return
    command(kinst_run, _SAMPLES / f"kernel-{machine}.elf", "--from", path, "--timeout", "1ms", "-q")


_CHANGES: Final = st.lists(st.tuples(st.lists(st.integers(0, 60), max_size=6).map(tuple), VALUES), max_size=2)
SNAPSHOTS: Final = Kind(
    "snapshots",
    st.tuples(
        st.sampled_from(_MACHINES),
        st.one_of(damages(1), st.tuples(_CHANGES, st.lists(_PATCHES, max_size=3))),
    ),
    _read,
    seconds=60,
)
