"""A manifest and where its image was loaded -> armed breakpoints in memory, and what to do when one is hit.

Sites stay columns: a kernel may have millions. A site becomes an object when it is hit for the first time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.address_space import AddressSpace
from kinst.runtime.arch.emulator import Emulator
from kinst.runtime.exceptions.exception_model import ExceptionModel
from kinst.runtime.loader import Loaded
from kinst.runtime.memory import PhysicalMemory
from kinst.runtime.qiling_machine import QilingMachine
from kinst.runtime.trap import RETURN_BREAKPOINT, Enabling, Firing, Site, TrapPath
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import MachineError
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.manifest import FIRST_PROBE_ID, Manifest, ProbeKind

Action = Callable[[Firing], None]
Argument = Callable[[Firing, int], int]

# A return site of these kinds is one only if control leaves the function: a conditional branch or a computed jump out
# of it is a tail call, inside it a loop or a switch.
_CONDITIONAL = (Flow.BRANCH, Flow.INDIRECT_JUMP)


@dataclass(frozen=True, slots=True)
class Patched:
    """A patched image in memory, and the bytes of its trampolines."""

    manifest: Manifest
    loaded: Loaded
    trampolines: bytes


class SiteTable:
    """All sites of an image: which are armed, and what each means."""

    def __init__(self, patched: Patched, arch: ArchFacts, emulator: Emulator, model: ExceptionModel) -> None:
        """Nothing is armed until `arm`."""
        self.manifest = patched.manifest
        self._patched = patched
        self._arch = arch
        self._emulator = emulator
        self._armed_bytes = model.armed
        self._addresses: NDArray[np.uint64] = np.ascontiguousarray(self.manifest.sites["address"])
        self._first_enabling = np.searchsorted(self.manifest.enablings["site"], np.arange(len(self._addresses) + 1))
        self._actions: list[Action] = [lambda _firing: None]
        self._action_of = np.zeros(len(self.manifest.probes), np.uint16)  # index in `_actions`; 0: disabled
        self.arguments: dict[int, Argument] = {}  # ProbeKind -> arg0, arg1, ... of its probes
        self.is_armed = np.ones(len(self._addresses), np.bool_)  # as the file has them

    # -- enabling -----------------------------------------------------------------------------------------------------

    def enable(self, rows: NDArray[np.intp], action: Action) -> None:
        """Let probes (rows of the manifest) do `action`; takes effect with `arm`."""
        self._actions.append(action)
        self._action_of[rows] = len(self._actions) - 1

    def disable(self, rows: NDArray[np.intp]) -> None:
        """Let probes do nothing; takes effect with `arm`."""
        self._action_of[rows] = 0

    def arm(self, memory: PhysicalMemory, trap: TrapPath) -> None:
        """Write breakpoints where a probe is enabled and the original bytes everywhere else."""
        enablings = self.manifest.enablings
        self.is_armed = np.zeros(len(self._addresses), np.bool_)
        self.is_armed[enablings["site"][self._action_of[enablings["probe"]] != 0]] = True
        sizes = self.manifest.sites["size"]
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            addresses = self._addresses[rows] + np.uint64(self._patched.loaded.bias)
            content = self._content(rows, size)
            for virtual, physical, length in self._patched.loaded.segments:
                region = memory.find(physical, length)
                assert region is not None, "the loader put the segment there"
                start = physical - region.base
                ram = np.frombuffer(region.view, np.uint8)[start : start + length]
                _scatter(ram, virtual, addresses, content)
        memory.is_code_stale = True
        trap.hits.clear()

    def show_armed(self, address: int, text: NDArray[np.uint8]) -> None:
        """Put into a copy of the image's bytes from a link address what memory was armed with."""
        sizes = self.manifest.sites["size"]
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            _scatter(text, address, self._addresses[rows], self._content(rows, size))

    def _content(self, rows: NDArray[np.intp], size: int) -> NDArray[np.uint8]:
        """(n, width) bytes that belong at sites of one size; amd64's are one byte wide."""
        armed = np.frombuffer(self._armed_bytes[size], np.uint8)
        content = self.manifest.sites["original"][rows].view(np.uint8).reshape(-1, 16)[:, : len(armed)].copy()
        content[self.is_armed[rows]] = armed
        return content

    def map_trampolines(self, space: AddressSpace, trap: TrapPath, engine: QilingMachine) -> None:
        """Make the trampolines reachable, their return breakpoints as Unicorn traps them cheapest."""
        address, size = self.manifest.trampolines
        if not size:
            return
        code = np.frombuffer(self._patched.trampolines, np.uint8).copy()
        if self._arch.link_register is not None:
            end = RETURN_BREAKPOINT + len(self._armed_bytes[4])
            slots = code.reshape(-1, self._arch.slot_size)
            slots[:, RETURN_BREAKPOINT:end] = np.frombuffer(self._armed_bytes[4], np.uint8)
        start = address + self._patched.loaded.bias
        space.overlay(start, code.tobytes())
        trap.trampolines = range(start, start + size)
        engine.set_trampolines(start, size, self._arch.slot_size)

    # -- hits ---------------------------------------------------------------------------------------------------------

    def row_at(self, address: int) -> int | None:
        """The row of the site at a link address."""
        if address < 0 or address >> 64:
            return None
        row = int(np.searchsorted(self._addresses, np.uint64(address)))
        return row if row < len(self._addresses) and int(self._addresses[row]) == address else None

    def site(self, row: int) -> Site:
        """One site with its enabled probes."""
        record = self.manifest.sites[row]
        bias = self._patched.loaded.bias
        size = int(record["size"])
        emulation = None
        if record["verdict"] == Verdict.EMULATE:
            emulation = self._emulator.emulation(int(record["kind"]), record["original"].tobytes()[:size])
        enabled = range(*self._first_enabling[row : row + 2].tolist())
        enablings = tuple(self._enabling(record, index) for index in enabled if self._is_enabled(index))
        return Site(int(record["address"]) + bias, size, int(record["trampoline"]) + bias, emulation, enablings)

    def _is_enabled(self, index: int) -> bool:
        return bool(self._action_of[self.manifest.enablings["probe"][index]])

    def _enabling(self, record: np.void, index: int) -> Enabling:
        row = int(self.manifest.enablings["probe"][index])
        probe = self.manifest.probes[row]
        function = self.manifest.functions[probe["function"]]
        start, size = int(function["address"]), int(function["size"])
        address, bias = int(record["address"]), self._patched.loaded.bias
        is_conditional = probe["kind"] == ProbeKind.FBT_RETURN and record["flow"] in _CONDITIONAL
        return Enabling(
            probe=FIRST_PROBE_ID + row,
            action=self._actions[self._action_of[row]],
            argument=self.arguments[int(probe["kind"])],
            offset=address - start,
            leaving=(start + bias, start + size + bias) if is_conditional else None,
        )

    def pristine(self, address: int, content: bytes) -> bytes:
        """Bytes read at a virtual address, with the original ones where sites are armed."""
        bias = self._patched.loaded.bias
        link = address - bias
        if link < 16 or link >> 64:
            return content
        first = int(np.searchsorted(self._addresses, np.uint64(link - 16)))
        last = int(np.searchsorted(self._addresses, np.uint64(link + len(content))))
        restored = bytearray(content)
        for row in range(first, last):
            if self.is_armed[row]:
                record = self.manifest.sites[row]
                original = record["original"].tobytes()[: len(self._armed_bytes[int(record["size"])])]
                for at, byte in enumerate(original, int(record["address"]) - link):
                    if 0 <= at < len(restored):
                        restored[at] = byte
        return bytes(restored)


def _scatter(memory: NDArray[np.uint8], start: int, addresses: NDArray[np.uint64], content: NDArray[np.uint8]) -> None:
    """Write rows of bytes at addresses, those that lie in `memory`, which begins at `start`."""
    offsets = addresses - np.uint64(start)
    inside = offsets < np.uint64(len(memory))
    places = offsets[inside].astype(np.int64)[:, None] + np.arange(content.shape[1])
    memory[places] = content[inside]


def trampoline_code(patched_image: Loaded, manifest: Manifest) -> bytes:
    """The bytes of the trampoline segment in a patched file."""
    address, size = manifest.trampolines
    if not size:
        return b""
    code = patched_image.image.read(address, size)
    if len(code) != size:
        raise MachineError(f"{patched_image.image.path}: the trampolines at {address:#x} are not in the file")
    return code
