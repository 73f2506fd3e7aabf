"""Linux's system calls as probes: `syscall::NAME:entry|return`, for each call that the kernel has a handler for.

NAME is the kernel's own name of a call, as SYSCALL_DEFINE has it: `openat`, `newfstatat`. A handler gets the registers
of user mode (struct pt_regs), from which arg0 to arg5 of `entry` are read. arg0 and arg1 of `return` are what the call
returns, negative error numbers included, and errno is the error number, or 0. args[] have the types that the kernel's
own tracing would show, where it is built in (CONFIG_FTRACE_SYSCALLS):

    struct syscall_metadata   0 name   8 syscall_nr   12 nb_args   16 types   24 args ...
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from kinst.runtime.providers.host import Point, ProviderHost, fire
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.elf.symbols import STT_FUNC, Symbols
from kinst.targets.errors import ImageError
from kinst.targets.image import Image
from kinst.targets.probe import ProbeName

ENTRY, RETURN = "entry", "return"
_METADATA: Final = "__syscall_meta__"
_COUNT_AT, _TYPES_AT = 12, 16
MOST: Final = 6
_LONGEST_TYPE: Final = 128
_WORD_TYPE: Final = "uint64_t"  # where the kernel does not say
RESULT: Final = Argument("int64_t")
_WORD: Final = 8
_LARGEST: Final = (1 << 64) - 1
_LAST_ERROR: Final = 4095  # MAX_ERRNO: results from -4095 on are error numbers


@dataclass(slots=True)
class _End:
    """One end of a system call's handler."""

    call: str
    name: str  # ENTRY or RETURN
    identifier: int = -1


class SyscallProvider:
    """See `kinst.runtime.providers.provider.Provider`."""

    registration = Registration(
        "syscall",
        ProviderAttributes(EVOLVING, EVOLVING, EVOLVING, EVOLVING, PRIVATE),
        needs="a Linux kernel with the names of its functions",
    )

    def __init__(self, host: ProviderHost) -> None:
        """Plant a point at both ends of each handler; none of them is armed."""
        self._host = host
        self._facts = host.arch.linux.system_calls
        self._enablings: dict[int, Enabling] = {}
        self._ends: dict[int, _End] = {}  # by identifier, once there is one
        self._points: dict[int, Point] = {}  # likewise
        self._planted = [
            self._plant(_End(call, name))
            for call in calls_of(host.image.symbols, self._facts.prefix)
            for name in (ENTRY, RETURN)
        ]

    def _plant(self, end: _End) -> tuple[_End, Point]:
        place = f"fbt::{self._facts.prefix}{end.call}:{end.name}"
        return end, self._host.plant(place, partial(self._reached, end), may_lack=True)  # exit does not return

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create all of them when it registers."""
        if wanted is None:
            for end, point in self._planted:
                end.identifier = probes.create("", end.call, end.name)
                self._ends[end.identifier], self._points[end.identifier] = end, point

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Arm the points."""
        for identifier in identifiers.tolist():
            error = self._error if self._ends[identifier].name == RETURN else None
            self._enablings[identifier] = Enabling(identifier, action, self.argument, 0, error=error)
            self._points[identifier].arm()

    def disable(self, identifiers: Identifiers) -> None:
        """Disarm them."""
        for identifier in identifiers.tolist():
            del self._enablings[identifier]
            self._points[identifier].disarm()

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: there is nothing to release."""

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """The types of the call's arguments, or of its result."""
        end = self._ends[identifier]
        if end.name == RETURN:
            return (RESULT, RESULT)
        return tuple(map(Argument, types_of(self._host.image, end.call)))

    def argument(self, firing: Firing, index: int) -> int:
        """A word of user mode's registers, or the result."""
        arch = self._host.arch
        if self._ends[firing.enabling.probe].name == RETURN:
            return firing.regs[arch.return_value] if index <= 1 else 0
        if index >= MOST:
            return 0
        return self._host.memory.load(firing.regs[arch.arguments[0]] + self._facts.arguments[index], _WORD)

    def _error(self, firing: Firing) -> int:
        return error_of(firing.regs[self._host.arch.return_value])

    def _reached(self, end: _End, firing: Firing) -> None:
        enabling = self._enablings.get(end.identifier)
        if enabling is not None:
            fire(firing, enabling)


def error_of(result: int) -> int:
    """errno of what a call returns: what user mode will find there, or one of the kernel's internal numbers for a call
    that is restarted; 0 if the call succeeded."""
    negated = -result & _LARGEST
    return negated if negated <= _LAST_ERROR else 0


def calls_of(symbols: Symbols, prefix: str) -> list[str]:
    """Names of the calls that have handlers."""
    names = symbols.names(np.flatnonzero(symbols.kind == STT_FUNC))
    return sorted({name.removeprefix(prefix) for name in names if name.startswith(prefix)})


def types_of(image: Image, call: str) -> list[str]:
    """C texts of the types of a call's arguments."""
    at = image.symbols.address_of(f"{_METADATA}{call}")
    if at is None:
        return [_WORD_TYPE] * MOST
    count = min(_word(image, at + _COUNT_AT, 4), MOST)
    types = _word(image, at + _TYPES_AT, _WORD)
    return [_type_text(image, types + number * _WORD) for number in range(count)]


def _type_text(image: Image, at: int) -> str:
    """The string that a pointer in the file points to. In the file of a kernel that relocates itself there is none
    yet."""
    try:
        text = image.read(_word(image, at, _WORD), _LONGEST_TYPE).partition(b"\0")[0].decode("ascii")
    except (ImageError, UnicodeDecodeError):
        return _WORD_TYPE
    return text.replace(" __user", "")


def _word(image: Image, at: int, size: int) -> int:
    return int.from_bytes(image.read(at, size), "little")
