"""Calls of an image's functions, one after another -> results: one machine is kept and reset between them.

To make a machine takes a tenth of a second or more, to reset one less than a millisecond. A call has the same result,
or fails with the same error, as in a fresh machine.
"""

import gc
import signal
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from kinst.rewriter.rewriting import Source
from kinst.runtime.machine.calling.kept_machine import KeptMachine
from kinst.runtime.machine.calling.loading import find_function
from kinst.runtime.machine.calling.template import Call
from kinst.runtime.machine.configuration import Configuration, End
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.host.limits import Limits
from kinst.targets.errors import GuestError, KinstError, MachineError
from kinst.targets.signals import caught
from kinst.targets.values import dataclass

_State = tuple[int, int, int, int, int]  # of a file: device and inode, and what changes when it is written


@dataclass(frozen=True, slots=True)
class Origin:
    """What a machine for calls is made from. A machine serves only calls of an equal origin."""

    configuration: Configuration
    board: str | None  # its name; None: the one of the image's architecture
    ends_on_panic: bool
    files: tuple[_State | None, ...]  # of the image, its symbols and debug information; None: it no longer exists


def files_of(source: Source) -> tuple[_State | None, ...]:
    """The state of an image's files."""
    return tuple(_state(path) for path in (source.path, source.symbols, source.debug_file) if path is not None)


def _state(path: Path) -> _State | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@dataclass(slots=True, eq=False)
class _Machine:
    """A machine between calls, in the state before the first of them."""

    origin: Origin
    guest: Guest
    kept: KeptMachine
    addresses: dict[str, int] = field(default_factory=dict)  # of functions that were called

    def close(self) -> None:
        """Release everything but memory, which is garbage then."""
        self.guest.surroundings.providers.close()
        self.guest.system.clock.close()  # its thread holds a reference to the machine

    def call(self, call: Call, limits: Limits) -> int:
        """What the function returns. Raises KinstError: see `KeptCalls.call`; KeyboardInterrupt: Ctrl-C."""
        guest, host = self.guest, self.guest.surroundings.host
        address = self.addresses.get(call.function)
        if address is None:
            found = find_function(guest.loaded.image, call.function, guest.discovered)
            address = self.addresses[call.function] = found
        with self.kept.call():
            try:
                with caught(lambda _number: host.finish(End.INTERRUPTED), signal.SIGINT):
                    end = guest.call(call, address, limits)
            except MachineError as error:
                lines = guest.ending(error).lines(is_verbose=False)  # where the CPU is, before the reset undoes it
                raise type(error)("\n".join([str(error), *lines])) from error
        if end is End.INTERRUPTED:
            raise KeyboardInterrupt
        if guest.result is None:
            raise MachineError(f"{call.text}: did not return: {end.value}")
        return guest.result


class KeptCalls:
    """The calls of one image. At most one machine is kept, while it is idle: calls that overlap, in threads, each have
    their own."""

    def __init__(self) -> None:
        """No machine is made yet."""
        self._idle: list[_Machine] = []

    def call(self, call: Call, limits: Limits, origin: Origin, make: Callable[[], Guest]) -> int:
        """Call a function in the machine that is kept, if it is of this origin, or else in one that `make` makes.

        Returns:
            What the function returned, as 64 unsigned bits.

        Raises:
            KinstError: there is no such function, it does something that nothing handles, or it does not return within
                the limits.
        """
        machine = self._taken(origin) or self._made(origin, make())
        try:
            result = machine.call(call, limits)
        except GuestError:
            raise  # the emulator itself failed, and a reset may not restore it
        except KinstError:
            self._keep(machine)
            raise
        self._keep(machine)
        return result

    def _taken(self, origin: Origin) -> _Machine | None:
        """Take the idle machine, for this thread alone; None: there is none, or it is of another origin."""
        try:
            machine = self._idle.pop()
        except IndexError:
            return None
        if machine.origin == origin:
            return machine
        machine.close()
        return None

    def _made(self, origin: Origin, guest: Guest) -> _Machine:
        guest.surroundings.arm()
        return _Machine(origin, guest, KeptMachine(guest.system, guest.loaded))

    def _keep(self, machine: _Machine) -> None:
        self._idle[:] = [machine]

    def close(self) -> None:
        """Free the machine."""
        if self._idle:
            self._idle.pop().close()
            gc.collect()  # engine and machine refer to each other
