"""What is known about the guest's software: its threads, processes and names.

A profile reads the structures of one operating system, so it belongs to that system (`kinst.runtime.systems`, one file
each): a class with the methods of `environment.GuestProfile`, and a function that makes it from a `Guest`, or returns
None if the image is not that system's. The bare machine's profile is here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final, Protocol

from kinst.runtime.clauses.environment import GuestProfile, Memory, TaskState
from kinst.runtime.dlang.builtins import FREEBSD
from kinst.runtime.hits.thread_ranges import ThreadRanges
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import ImageTypes
from kinst.targets.errors import KinstError, UsageError
from kinst.targets.values import dataclass

AUTO: Final = "auto"  # of --os: the system whose evidence is in the image
NONE: Final = "none"  # of --os: the bare machine, whatever is in the image

UserMode = Callable[[Firing], bool]


class Threads(Protocol):
    """Tells threads apart where no operating system is known. `kinst.runtime.unwinding.contexts.Contexts` implements
    it."""

    @property
    def description(self) -> str:
        """See `GuestProfile`."""
        ...

    def begin(self, forget: Callable[[int], None]) -> None:
        """See `GuestProfile`."""
        ...

    def thread(self, firing: Firing) -> int:
        """See `GuestProfile`."""
        ...

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """See `GuestProfile`."""
        ...


class CpuThreads:
    """`Threads` of a machine without a guest: each CPU is one thread."""

    description = "the CPU: there is no guest"

    def begin(self, forget: Callable[[int], None]) -> None:
        """No thread ever ends."""

    def thread(self, firing: Firing) -> int:
        """The CPU, or a thread of the tracer itself."""
        return firing.thread

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """None: there is no engine."""
        return None


_CPUS: Final = CpuThreads()


@dataclass(frozen=True, slots=True)
class Guest:
    """What a profile may use: the image's types and symbols, its memory, and the state of its CPU."""

    name: str  # the file name of the image; empty without an image
    arch: ArchFacts
    types: ImageTypes
    memory: Memory
    is_user: UserMode
    threads: Threads = _CPUS
    symbol: Callable[[str], int | None] = lambda _name: None  # where a symbol was linked
    register: Callable[[str], int] = lambda _name: 0  # a register of the CPU, including those outside the trap frame
    bias: int = 0  # how far, in bytes, the image was moved when it was loaded
    stack_size: int | None = None  # bytes of the stacks that the kernel makes; None if that is not known
    # The current task's address, where memory has only that task's words; None: registers and memory lead to it.
    task: Callable[[], int] | None = None


@dataclass(frozen=True, slots=True)
class PanicSign:
    """A variable of a kernel that has one value until the kernel panics, and never that value again."""

    symbol: str
    size: int  # bytes
    before: int  # unsigned


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    """An operating system for which there is a profile."""

    name: str  # in --os
    evidence: str  # a symbol by which images of it are recognised
    profile: Callable[[Guest], GuestProfile | None]  # None: the image is not of this system
    constants: Mapping[str, int] = field(default_factory=lambda: FREEBSD)  # NULL, SIGINT and the like
    # All of these change once the kernel has panicked, has printed so, and will not restart; empty: a panic is
    # unnoticed.
    panic: tuple[PanicSign, ...] = ()
    # Variables -> their types in C, where they have been the same for long: BTF describes no variables but those that
    # each CPU has.
    variables: Mapping[str, str] = field(default_factory=dict)


class BareProfile:
    """The profile of a machine about whose software nothing is known but its stacks."""

    def __init__(
        self, image_name: str, is_user: UserMode = lambda _firing: False, threads: Threads = _CPUS, why: str = ""
    ) -> None:
        """`image_name` is shown as execname. `threads` gives the thread of a firing; by default it is the CPU. `why` is
        the warning for a program that uses what only an operating system has; empty: none."""
        self._name = image_name.encode(errors="surrogateescape")
        self._is_user = is_user
        self._why = why
        self.thread, self.begin, self.description = threads.thread, threads.begin, threads.description
        self.ranges = threads.ranges

    def integer(self, firing: Firing, name: str) -> int:
        """0 for pid, uid and all others: a bare machine has no processes."""
        return 0

    def string(self, firing: Firing, name: str) -> bytes:
        """The image's file name for execname and execargs; empty for all others."""
        return self._name if name in ("execname", "execargs") else b""

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        return self._is_user(firing)

    def user_registers(self, firing: Firing) -> Sequence[int] | None:
        """Those of the CPU, if it is in user mode: where a kernel has saved them depends on the system."""
        return firing.regs if self._is_user(firing) else None

    def interrupted(self, sp: int) -> Sequence[int] | None:
        """None: where a kernel saves registers depends on the system."""
        return None

    def tasks(self) -> Sequence[TaskState]:
        """None: a bare machine has no tasks."""
        return ()

    def why_not(self, name: str) -> str:
        """See `GuestProfile`."""
        return self._why


def profile_for(guest: Guest, systems: Sequence[OperatingSystem], wanted: str = AUTO) -> GuestProfile:
    """The profile of the system that is wanted, or of the first that recognises the image; or the bare machine's.

    Raises:
        UsageError: there is no such system.
        KinstError: the image is not of this system.
    """
    asked = systems if wanted == AUTO else [system for system in systems if system.name == wanted]
    for system in asked:
        profile = system.profile(guest)
        if profile is not None:
            return profile
        if wanted != AUTO:
            raise KinstError(f"{guest.name}: --os {wanted}: not such a kernel: it has no symbol {system.evidence}")
    names = ", ".join(system.name for system in systems)
    if not asked and wanted != NONE:
        raise UsageError(f"--os {wanted}: no such system; there are {AUTO}, {NONE}, {names}")
    why = (
        f"{guest.name}: pid and the like are 0, and execname is the image's name: "
        f"no system that is known ({names}) was found in it"
    )
    return BareProfile(guest.name, guest.is_user, guest.threads, "" if wanted == NONE else why)


def user_mode(arch: ArchFacts, read: Callable[[str], int]) -> UserMode:
    """A function that says whether a firing's CPU is in user mode. `read` gives registers outside the trap frame."""
    register, mask, wanted = arch.user_mode
    if isinstance(register, str):
        return lambda _firing: read(register) & mask == wanted
    return lambda firing: firing.regs[register] & mask == wanted


def user_mode_register(arch: ArchFacts, read: Callable[[str], int]) -> Callable[[], bool]:
    """A function that says whether the running CPU is in user mode. `read` gives any register."""
    register, mask, wanted = arch.user_mode
    name = register if isinstance(register, str) else arch.registers[register]
    return lambda: read(name) & mask == wanted
