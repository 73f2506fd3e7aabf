"""What a running clause asks of the session, and what it leaves behind for the consumer. Contracts only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts


@dataclass(frozen=True, slots=True)
class Stack:
    """Return addresses, innermost first; the first is the PC itself. Equal stacks are one key. `frames` is how many
    were asked for: stack(3) and stack(5) of the same place are different keys."""

    addresses: tuple[int, ...]
    frames: int
    is_user: bool = False


@dataclass(frozen=True, slots=True)
class SymbolName:
    """An address to be shown by name: `kind` is sym, func, mod, usym, ufunc, umod or uaddr. sym, func and mod of two
    addresses in the same object are the same key: the environment reduces the address to where the object begins."""

    kind: str
    address: int


# What a clause that records leaves: CPU, probe id, number of the clause (its place in the session's list), machine time
# in ns (0 unless `Environment.records_time`), and one value for each recording action in the order of `Clause.actions`:
# int, bytes, Stack, SymbolName, None, or a tuple of those (printf). A tuple, since a hit costs microseconds.
Value = int | bytes | Stack | SymbolName | None
Record = tuple[int, int, int, int, tuple[Value | tuple[Value, ...], ...]]


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """A clause was aborted: what dtrace's own ERROR enabling records."""

    cpu: int
    probe: int
    epid: int
    action: int  # 0: predicate
    fault: Fault


class Memory(Protocol):
    """Memory as clauses see it: the guest's virtual memory and D's own scratch; nothing here changes the guest, and a
    bad address raises `Fault` with BADADDR and the address."""

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of 1, 2, 4 or 8 bytes."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """Bytes."""
        ...

    def string(self, address: int, limit: int) -> bytes:
        """Bytes up to the NUL, without it, at most `limit`; only the bytes that belong to it are touched."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Into scratch memory only; BADADDR elsewhere."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Into scratch memory only; BADADDR elsewhere."""
        ...

    def write_guest(self, address: int, data: bytes) -> None:
        """copyout, copyoutstr: the guest's memory (destructive)."""
        ...


class GuestProfile(Protocol):
    """What the guest's software tells about itself. A bare machine knows little; a profile of an operating system reads
    the kernel's own structures. `firing` is the CPU as it stands at the probe."""

    def thread(self, firing: Firing) -> int:
        """A key for self->: the guest's current thread, or the CPU where that is not known."""
        ...

    def integer(self, firing: Firing, name: str) -> int:
        """pid, ppid, tid, uid, gid, jid, ipl, errno, curthread, ...: 0 where a bare machine has none."""
        ...

    def string(self, firing: Firing, name: str) -> bytes:
        """execname (the image's file name), execargs, zonename, jailname, cwd, root."""
        ...

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        ...


class Stacks(Protocol):
    """Unwinding at a probe."""

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """Addresses for stack(), innermost first, at most `frames`."""
        ...

    def user_stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """Addresses for ustack(): empty where the guest has no user mode."""
        ...

    def depth(self, firing: Firing) -> int:
        """stackdepth."""
        ...

    def caller(self, firing: Firing) -> int:
        """caller: the address that the current function returns to; 0 if unknown."""
        ...

    def user_caller(self, firing: Firing) -> int:
        """ucaller."""
        ...


class Symbols(Protocol):
    """Addresses to names."""

    def object_start(self, address: int, kind: str) -> int:
        """What SymbolName.address is for this kind: the start of the function (sym, func) or of the module (mod); the
        address itself where there is none, and for kind "uaddr"."""
        ...

    def describe(self, address: int, kind: str) -> str:
        """As dtrace prints it: module`function+0x1c, or without the offset if it is 0 or the kind is sym, func;
        module`0xaddress or 0xaddress where there is no symbol; only the module for mod and umod."""
        ...


class Environment(Protocol):
    """Everything a compiled clause uses besides its own program's state."""

    @property
    def arch(self) -> ArchFacts:
        """The machine: names of registers (`R_...`), the PC."""
        ...

    @property
    def memory(self) -> Memory:
        """Memory."""
        ...

    @property
    def stacks(self) -> Stacks:
        """Unwinding."""
        ...

    @property
    def symbols(self) -> Symbols:
        """Names of addresses."""
        ...

    @property
    def locate(self) -> Callable[[int, int], int]:
        """A link address, and where code runs that means it -> where it is: the guest may have moved itself."""
        ...

    @property
    def profile(self) -> GuestProfile:
        """The guest's software."""
        ...

    @property
    def now(self) -> Callable[[], int]:
        """timestamp: the machine's time in ns."""
        ...

    @property
    def wall(self) -> Callable[[], int]:
        """walltimestamp: ns since 1970."""
        ...

    @property
    def probe(self) -> Callable[[int], Probe | None]:
        """A probe by its id."""
        ...

    @property
    def records_time(self) -> bool:
        """Whether records carry the time."""
        ...

    def option(self, name: str) -> int:
        """A numeric run-time option: strsize, stackframes, ustackframes, jstackstrsize, dynvarsize, ..."""
        ...

    def exit(self, status: int) -> None:
        """exit(): no probe but END fires after this firing's clause."""
        ...

    def fault(self, firing: Firing, clause: int, action: int, fault: Fault) -> None:
        """A clause was aborted: record it and fire dtrace:::ERROR (never from within it)."""
        ...

    def epid(self, clause: int, probe: int) -> int:
        """The id of the enabling of a probe by a clause: the builtin variable epid."""
        ...

    def destructive(self, firing: Firing, kind: str, argument: int) -> None:
        """stop, raise, breakpoint, panic, chill."""
        ...
