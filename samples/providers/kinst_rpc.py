"""The sample kernel's remote procedure calls as probes: `rpc:v2|v3:<procedure>:start|done`.

struct rpc_operation is a name, a handler and two counters, 24 bytes; `operations` is an array of them, five for each
version. rpc_call(operation, request) is where every call passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kinst.runtime.providers.host import ProviderHost, fire
from kinst.runtime.providers.provider import Action, Argument, Identifiers, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.image import Image
from kinst.targets.probe import ProbeName

CALL: Final = "rpc_call"
TABLE: Final = "operations"
OPERATION_SIZE: Final = 24
PROCEDURES: Final = 5
FIRST_VERSION: Final = 2
VERSIONS: Final = 2
VERSION_OFFSET: Final = 4  # of the version in struct rpc_request
LONGEST_NAME: Final = 32
REQUEST: Final = Argument("struct rpc_request *")
ERROR: Final = Argument("int")


@dataclass(frozen=True, slots=True)
class Call:
    """A call under way."""

    done: int  # identifier of its done probe
    request: int


class RpcProvider:
    """See `kinst.runtime.providers.provider.Provider`."""

    registration = Registration("rpc", ProviderAttributes(EVOLVING, EVOLVING, EVOLVING, EVOLVING, PRIVATE))

    def __init__(self, host: ProviderHost) -> None:
        """Plant both points, if the image has the function."""
        self._host = host
        self._is_there = host.address_of(CALL) is not None
        self._points = []
        if self._is_there:
            for place, called in (("entry", self._entered), ("return", self._returned)):
                self._points.append(host.plant(f"fbt::{CALL}:{place}", called))
        self._probes: Probes | None = None
        self._start_of: dict[int, int] = {}  # link address of an operation -> its start probe; done is the next
        self._enablings: dict[int, Enabling] = {}
        self._calls: dict[int, Call] = {}  # by the stack pointer: it is the same at entry and return
        self._returning = Call(0, 0)

    # -- the life cycle -----------------------------------------------------------------------------------------------

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """What the image's own table says."""
        self._probes = probes
        table = self._host.address_of(TABLE)
        if wanted is not None or not self._is_there or table is None:
            return
        for number in range(VERSIONS * PROCEDURES):
            address = table + number * OPERATION_SIZE
            version = FIRST_VERSION + number // PROCEDURES
            self._create(address, f"v{version}", _name_in(self._host.image, address))

    def _create(self, operation: int, version: str, procedure: str) -> int:
        assert self._probes is not None, "provide comes first"
        start = self._probes.create(version, procedure, "start")
        self._probes.create(version, procedure, "done")
        self._start_of[operation] = start
        return start

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Arm the points with the first probe."""
        for identifier in identifiers.tolist():
            self._enablings[identifier] = Enabling(identifier, action, self.argument, 0)
        for point in self._points:
            point.arm()

    def disable(self, identifiers: Identifiers) -> None:
        """Disarm them with the last."""
        for identifier in identifiers.tolist():
            self._enablings.pop(identifier, None)
        if not self._enablings:
            for point in self._points:
                point.disarm()
            self._calls.clear()

    def destroy(self, identifiers: Identifiers) -> None:
        """Forget operations whose probes are gone; should one be called again, it gets new ones."""
        gone = set(identifiers.tolist())
        self._start_of = {operation: start for operation, start in self._start_of.items() if start not in gone}

    # -- arguments ----------------------------------------------------------------------------------------------------

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """The request; when it is done, the error too."""
        return (REQUEST,) if identifier in self._start_of.values() else (REQUEST, ERROR)

    def argument(self, firing: Firing, index: int) -> int:
        """From the registers of the CPU at entry or return."""
        arch = self._host.arch
        if firing.enabling.probe != self._returning.done:
            return firing.regs[arch.arguments[1]] if index == 0 else 0
        if index == 0:
            return self._returning.request
        error = firing.regs[arch.return_value] & 0xFFFF_FFFF
        return (error - ((error >> 31) << 32)) & (1 << 64) - 1 if index == 1 else 0

    # -- the points ---------------------------------------------------------------------------------------------------

    def _entered(self, firing: Firing) -> None:
        operation, request = (firing.regs[register] for register in self._host.arch.arguments[:2])
        start = self._start_of.get(operation - self._host.bias) or self._discover(operation, request)
        if start is None:
            return
        self._calls[firing.regs[self._host.arch.stack_pointer]] = Call(start + 1, request)
        self._returning = Call(0, 0)
        self._fire(start, firing)

    def _returned(self, firing: Firing) -> None:
        call = self._calls.pop(firing.regs[self._host.arch.stack_pointer], None)
        if call is not None:  # else it began before the point was armed
            self._returning = call
            self._fire(call.done, firing)

    def _fire(self, identifier: int, firing: Firing) -> None:
        enabling = self._enablings.get(identifier)
        if enabling is not None:
            fire(firing, enabling)

    def _discover(self, operation: int, request: int) -> int | None:
        """An operation that the image's table does not have: made while the kernel runs."""
        memory = self._host.memory
        try:
            name = memory.string(memory.load(operation, 8), LONGEST_NAME).decode("ascii", "replace")
            version = memory.load(request + VERSION_OFFSET, 4)
        except Fault:
            return None
        return self._create(operation - self._host.bias, f"v{version}", name) if name.isidentifier() else None


def _name_in(image: Image, operation: int) -> str:
    """The name of an operation, as it stands in the image file."""
    text = image.read(int.from_bytes(image.read(operation, 8), "little"), LONGEST_NAME)
    return text.partition(b"\0")[0].decode("ascii", "replace")
