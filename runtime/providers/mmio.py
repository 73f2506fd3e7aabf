"""mmio: each access of the guest to a device, `mmio:DEVICE:REGISTER:read|write`.

DEVICE is the name in the machine's record, REGISTER that of the device's manual, or `other`. What no device answers has
the device `unmodelled`. A description without a module may name the device in the function field: `mmio::console:write`
is all of its registers. A range of addresses in that field, `mmio::0x9000000-0x9000fff:read` or `mmio::0x9000000+16:`,
is a probe of its own, which is made on demand; I/O ports have the module `ports`: `mmio:ports:0x3f8+8:write`.

A read fires after the device has answered, a write before it is done.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from kinst.runtime.machine.devices.register_names import OTHER, RegisterNames, register_names
from kinst.runtime.machine.watching.accesses import AccessWatcher, DeviceAccess
from kinst.runtime.paging.walker import Access
from kinst.runtime.providers.probe_table import Identifiers, Probe
from kinst.runtime.providers.provider import Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, EVOLVING_ISA, ProviderAttributes
from kinst.runtime.providers.watching_provider import WatchingProvider
from kinst.runtime.trap.trap import Firing
from kinst.targets.machines.machine import DeviceFacts, Space
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass

UNMODELLED: Final = "unmodelled"
NAMES: Final[Mapping[Access, str]] = {Access.READ: "read", Access.WRITE: "write"}
_PROVIDER, _PORTS = "mmio", "ports"
_ARGUMENTS: Final = tuple(map(Argument, ("uint64_t", "uint64_t", "uint32_t", "uint64_t", "uint64_t")))
_RANGE: Final = re.compile(r"(0[xX][0-9a-fA-F]+)(?:([-+])(0[xX][0-9a-fA-F]+|[0-9]+))?", re.ASCII)
_LONGEST: Final = 1 << 64  # bytes of an address space


class AccessHost(Protocol):
    """What the provider needs from the run."""

    @property
    def devices(self) -> Mapping[str, DeviceFacts]:
        """The devices of the machine's record, by name."""
        ...

    def watch(self, watcher: AccessWatcher) -> None:
        """Call `watcher` with each access from now on."""
        ...

    def unwatch(self, watcher: AccessWatcher) -> None:
        """Call it no more."""
        ...

    def accessing(self, access: DeviceAccess) -> Firing:
        """A firing at the instruction of the access that a watcher is called with at the moment."""
        ...


class DeviceMap:
    """The names of what is at an address or port."""

    def __init__(self, devices: Mapping[str, DeviceFacts]) -> None:
        """`devices` are those of a machine's record."""
        self._rows: dict[Space, list[tuple[int, int, str]]] = {space: [] for space in Space}
        self._names = {name: register_names(name, facts) for name, facts in devices.items()}
        for name, facts in devices.items():
            self._rows[facts.space].append((facts.address, facts.size, name))
        for rows in self._rows.values():
            rows.sort()

    @property
    def registers(self) -> Mapping[str, RegisterNames]:
        """The registers of each device."""
        return self._names

    def of(self, access: DeviceAccess) -> tuple[str, str, int]:
        """The device and the register of an access, and the offset in the device."""
        rows = self._rows[access.space]
        row = bisect_right(rows, (access.address, _LONGEST)) - 1
        if not access.is_answered or row < 0 or access.address - rows[row][0] >= rows[row][1]:
            return (OTHER if access.is_answered else UNMODELLED), OTHER, 0
        offset, name = access.address - rows[row][0], rows[row][2]
        return name, self._names[name].at(offset), offset


@dataclass(frozen=True, slots=True)
class _Row:
    """A probe. `addresses` are those of a range; None: it is a register's."""

    module: str
    function: str
    name: str
    addresses: range | None = None

    def is_matched(self, pattern: ProbeName) -> bool:
        """Whether a description means it. One of a range is only meant by its own text: each of its accesses fires a
        register's probe as well, and `mmio:::` must not fire twice."""
        if self.addresses is not None and pattern.function != self.function:
            return False
        if pattern.matches(_PROVIDER, self.module, self.function, self.name):
            return True
        is_device_s = not pattern.module and pattern.function and pattern.matches_function(self.module)
        return bool(is_device_s) and pattern.matches_name(self.name)


class _Block:
    """A `ProbeBlock` of rows."""

    def __init__(self, first: int, rows: Sequence[_Row]) -> None:
        self._first, self.rows = first, list(rows)
        self.identifiers: Identifiers = np.arange(first, first + len(rows), dtype=np.intp)

    def match(self, pattern: ProbeName) -> Identifiers:
        return self.identifiers[[row.is_matched(pattern) for row in self.rows]]

    def probe(self, identifier: int) -> Probe | None:
        if not 0 <= identifier - self._first < len(self.rows):
            return None
        row = self.rows[identifier - self._first]
        return Probe(identifier, _PROVIDER, row.module, row.function, row.name)


def parsed_range(text: str) -> range | None:
    """The addresses of `0xFIRST-0xLAST`, `0xFIRST+SIZE` or `0xADDRESS`; None if the text is none of these."""
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    first, sign = int(found[1], 16), found[2]
    number = 1 if found[3] is None else int(found[3], 0) if found[3][:2] in ("0x", "0X") else int(found[3])
    end = number + 1 if sign == "-" else first + number
    return range(first, end) if first < end <= _LONGEST else None


class MmioProvider(WatchingProvider):
    """The provider `mmio`; implements `kinst.runtime.providers.provider.Provider`."""

    registration = Registration(
        _PROVIDER, ProviderAttributes(EVOLVING, EVOLVING_ISA, EVOLVING_ISA, EVOLVING, EVOLVING_ISA)
    )

    def __init__(self, host: AccessHost) -> None:
        """Nothing is enabled, and nothing watched."""
        super().__init__(lambda: host.watch(self._accessed), lambda: host.unwatch(self._accessed))
        self._host = host
        self._map = DeviceMap(host.devices)
        self._of_register: dict[tuple[str, str, Access], int] = {}
        self._ranges: dict[int, tuple[range, Space, Access]] = {}  # by identifier
        self._known: set[_Row] = set()

    # -- provider -----------------------------------------------------------------------------------------------------

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create the probes of all registers, and on demand those of a range."""
        if wanted is not None:
            self._provide_ranges(probes, wanted)
            return
        devices = [(name, (*table.names, OTHER)) for name, table in self._map.registers.items()]
        keys = [
            (device, register, access)
            for device, registers in (*devices, (OTHER, (OTHER,)), (UNMODELLED, (OTHER,)))
            for register in registers
            for access in NAMES
        ]
        first = probes.reserve(len(keys))
        probes.add(_Block(first, [_Row(device, register, NAMES[access]) for device, register, access in keys]))
        self._of_register = {key: first + at for at, key in enumerate(keys)}

    def _provide_ranges(self, probes: Probes, wanted: ProbeName) -> None:
        addresses = parsed_range(wanted.function)
        if addresses is None or wanted.module not in ("", _PORTS):
            return
        space = Space.PORTS if wanted.module else Space.MEMORY
        for access, name in NAMES.items():
            row = _Row(wanted.module, wanted.function, name, addresses)
            if wanted.matches_name(name) and row not in self._known:
                self._known.add(row)
                identifier = probes.reserve(1)
                self._ranges[identifier] = addresses, space, access
                probes.add(_Block(identifier, [row]))

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """The physical address or port, the value, the size in bytes, the instruction's address, the offset in the
        device."""
        return _ARGUMENTS

    # -- accesses -----------------------------------------------------------------------------------------------------

    def _accessed(self, access: DeviceAccess) -> None:
        device, register, offset = self._map.of(access)
        own = self._enablings.get(self._of_register[device, register, access.access])
        enabled = [own, *(self._enablings.get(one) for one in self._ranges if self._is_in(one, access))]
        chosen = [one for one in enabled if one is not None]
        if chosen:
            firing = self._host.accessing(access)
            self._values = access.address, access.value, access.size, firing.site, offset
            for one in chosen:
                firing.fire(one)

    def _is_in(self, identifier: int, access: DeviceAccess) -> bool:
        addresses, space, kind = self._ranges[identifier]
        if space is not access.space or kind is not access.access:
            return False
        return access.address < addresses.stop and addresses.start < access.address + max(access.size, 1)
