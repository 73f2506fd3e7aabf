"""A guest -> calls of its functions, one after another, each from the same state; and what became of each."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.function_call import CallFault, FunctionCall
from kinst.runtime.machine.calling.kept_machine import CallMachine, KeptMachine
from kinst.runtime.machine.calling.loading import find_function
from kinst.runtime.machine.calling.template import Call
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.hooks import NO_HOOKS, MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.guests.snapshotting import GuestSnapshots
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.targets.errors import MachineError

CALL_TIMEOUT: Final = 100_000_000  # ns of the machine's time that a call may take, if nothing is said


class CallingGuest(Protocol):
    """What is used of a guest: `kinst.runtime.tracing.guests.guest.Guest`."""

    prepared: Prepared
    system: System
    loaded: Loaded
    surroundings: Surroundings
    snapshots: GuestSnapshots
    link_address: Callable[[int], int]

    def discovered(self) -> dict[str, int]:
        """The names and addresses of all functions."""
        ...


class Calls:
    """The functions of one guest, which has not run otherwise, or has stopped for good."""

    def __init__(self, guest: CallingGuest) -> None:
        """Probes are armed by now. Each call will begin with the present state. Raises KinstError: it is no state in
        which functions can be called."""
        self._guest, self._system = guest, guest.system
        self._addresses: dict[str, int] = {}
        self._is_live = guest.prepared.call is None
        self.machine: CallMachine = self._live() if self._is_live else KeptMachine(guest.system, guest.loaded)
        counter = guest.system.engine.counter
        self._executed: Callable[[], int | None] = (lambda: None) if counter is None else (lambda: counter.executed)

    def _live(self) -> CallMachine:
        from kinst.runtime.machine.calling.live_machine import LiveMachine
        from kinst.targets.kernels.exception_table import expected_faults

        guest = self._guest
        guest.snapshots.begin()
        expected = frozenset(expected_faults(guest.prepared.original).instruction.tolist())
        machine = LiveMachine(self._system, expected, guest.link_address)
        self._pc = self._system.trap.original(self._system.engine.pc())
        guest.link_address(self._pc)  # finds where the image has moved itself
        return machine

    @property
    def engine(self) -> QilingMachine:
        """What executes the calls, for whoever observes it."""
        return self._system.engine

    def finish(self, end: End) -> None:
        """End the call that is under way, or the next one."""
        self._system.finish(end)

    def address_of(self, function: str) -> int:
        """Where a function is, in the copy of the image that runs. Raises UsageError: there is no such function."""
        found = self._addresses.get(function)
        if found is None:
            guest = self._guest
            found = find_function(guest.loaded.image, function, guest.discovered)
            if self._is_live and function[:2] not in ("0x", "0X"):
                found = guest.surroundings.locate(found, self._pc)
            self._addresses[function] = found
        return found

    def call(
        self, call: Call, timeout: int = CALL_TIMEOUT, hooks: MachineHooks = NO_HOOKS, wall: int | None = None
    ) -> Called:
        """Make one call. `timeout` is of the machine's time, `wall` of the host's, in ns; `hooks.event` is the call's.

        Raises:
            UsageError: there is no such function, or no space for the arguments.
        """
        address, system = self.address_of(call.function), self._system
        with self.machine.call():
            begun, before = time.perf_counter_ns(), self._executed()
            made = FunctionCall(system, call, address, self.machine.place, self.machine.handler)
            try:
                end = system.run(timeout, wall, MachineHooks(hooks.console, hooks.after_turn, made.handle))
            except CallFault as error:
                return self._faulted(call, error, begun, before)
            except MachineError as error:  # such as tables of translations that lead nowhere
                return self._made(None, None, begun, before, error=str(error).removeprefix(f"{call.text}: "))
            return self._made(made.result if end is End.RETURNED else None, end, begun, before)

    def _faulted(self, call: Call, error: CallFault, begun: int, before: int | None) -> Called:
        where = self._guest.surroundings.symbols.describe(error.pc, "stack")
        text = str(error).removeprefix(f"{call.text}: ")
        return self._made(None, None, begun, before, error=text, pc=error.pc, what=error.what, where=where)

    def _made(
        self,
        result: int | None,
        end: End | None,
        begun: int,
        before: int | None,
        *,
        error: str = "",
        pc: int | None = None,
        what: str = "",
        where: str = "",
    ) -> Called:
        after, spent = self._executed(), time.perf_counter_ns() - begun
        instructions = None if before is None or after is None else after - before
        return Called(
            result,
            end,
            error,
            pc=pc,
            what=what,
            where=where,
            instructions=instructions,
            nanoseconds=spent,
        )
