"""Snapshots of anybody: files that were right once with bytes changed, and headers with other values and right digests.

Each is read in full. What is believed is run from for a moment: the guest may do anything then, and we nothing wrong.
"""

import base64
import hashlib
import json
import os
import struct
from collections.abc import Callable
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
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.compression import zstd_content, zstd_frame
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.caches import VALUES, Change, changed
from tests.fuzz.kind import Kind, command

_SAMPLES: Final = Path(__file__).parent.parent.parent / "samples"
_MACHINES: Final = ("amd64", "arm64", "riscv64")
_HEAD: Final = struct.Struct("<8sII32s")
_VALUES: Final = st.one_of(
    st.sampled_from((0, 1, 2, 7, 0x1F, 0x80, 0xFF, 1 << 31, (1 << 32) - 1, 1 << 47, 1 << 63, (1 << 64) - 1)),
    st.integers(0, 255),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 63).map(lambda bit: 1 << bit),
)
# Words of a CPU: one of the registers that there are rules for, by number, or any, by place.
_PATCHES: Final = st.tuples(st.booleans(), st.integers(0, 1 << 14), st.integers(0, 63), _VALUES, st.booleans())
Patch = tuple[bool, int, int, int, bool]


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


def patched(machine: str, state: bytes, patches: list[Patch]) -> bytes:
    """A CPU's state with other words: in place of what is there, or with these bits turned over."""
    fields, changed = arch_by_name(machine).engine.state.fields, bytearray(state)
    for is_named, number, index, value, is_turned in patches:
        size, at = 8, number % (len(state) - 8)
        if is_named:
            field = fields[number % len(fields)]
            offsets = list(field.offsets())
            size, at = field.size, offsets[index % len(offsets)]
        before = int.from_bytes(changed[at : at + size], "little") if is_turned else 0
        changed[at : at + size] = ((value ^ before) & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(changed)


def sealed(machine: str, changes: list[Change], patch: Callable[[bytes], bytes]) -> bytes:
    """A file with a right digest whose header says something else; of a CPU, what `patch` makes of its state."""
    data = _file(machine)
    magic, version, size, _ = _HEAD.unpack_from(data)
    content = data[_HEAD.size : _HEAD.size + size]
    header: Any = json.loads(zstd_content(memoryview(content), 1 << 28))
    cpu = header["state"]["cpus"][0][0]
    cpu[1] = base64.b64encode(patch(base64.b64decode(cpu[1]))).decode()
    for path, what in changes:
        header = changed(header, path, what)
    frame = zstd_frame(memoryview(json.dumps(header).encode()))
    head = _HEAD.pack(magic, version, len(frame), hashlib.sha256(frame).digest())
    return head + frame + data[_HEAD.size + size :]


def _read(drawn: tuple[str, Damage | tuple[list[Change], list[Patch]]], folder: Path) -> None:
    machine, how = drawn
    os.environ["XDG_CACHE_HOME"] = str(folder)  # in a process of its own
    path = folder / "file"
    if isinstance(how, Damage):
        data = _file(machine)
        path.write_bytes(how.of(data, [range(len(data))]))
    else:
        changes, patches = how
        path.write_bytes(sealed(machine, changes, lambda state: patched(machine, state, patches)))
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
