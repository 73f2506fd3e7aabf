"""What a running clause needs from the session, and the records that it makes for the consumer. Interfaces only."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from kinst.runtime.hits.thread_ranges import ThreadRanges
from kinst.runtime.providers.provider import Argument, Probe
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass

CALLER: Final = "caller"  # the kind of an address in a stack after the first: one that a call returns to
POINTER: Final = "pointer"  # the kind of an address in data: what is just behind a function is not that function's


@dataclass(frozen=True, slots=True)
class Stack:
    """Return addresses, innermost first; the first is the PC itself. Equal stacks are one key. `frames` is the argument
    of stack(): its record is that long, so that stack(3) and stack(5) at the same place are different keys."""

    addresses: tuple[int, ...]
    frames: int
    is_user: bool = False
    process: int = 0  # the pid of a user stack, so that two processes are two keys; 0 if all addresses have names
    names: tuple[str, ...] = ()  # of the addresses, if the programs of user mode are known


@dataclass(frozen=True, slots=True)
class SymbolName:
    """An address that is shown by name. `kind` is sym, func, mod, usym, ufunc, umod or uaddr. For sym, func and mod,
    two addresses in the same object are the same key: the environment reduces an address to the start of its object."""

    kind: str
    address: int
    process: int = 0  # as in `Stack`
    name: str = ""  # as in `Stack`


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task of the guest's operating system, as its kernel describes it now."""

    pid: int  # of the process
    tid: int
    name: str
    state: str  # a letter as in ps(1): R is running or runnable, S and D sleep, T is stopped, Z a zombie, I idle
    runtime: int  # ns for which it has run


# What a clause records: CPU, probe id, number of the clause (its place in the session's list), the machine's time in ns
# (0 unless `Environment.records_time`), and one value for each recording action, in the order of `Clause.actions`: int,
# bytes, Stack, SymbolName, None, or a tuple of those (printf). It is a tuple, since a dataclass costs more than the
# rest of a simple clause.
Value = int | bytes | Stack | SymbolName | None
Record = tuple[int, int, int, int, tuple[Value | tuple[Value, ...], ...]]


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """The record of a clause that was aborted, as dtrace's own ERROR enabling makes it."""

    cpu: int
    probe: int
    epid: int
    action: int  # 0: predicate
    fault: Fault


class Memory(Protocol):
    """Memory as clauses see it: the guest's virtual memory, and D's own scratch memory. Only `write_guest` changes the
    guest. A bad address raises `Fault` BADADDR with the address."""

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of 1, 2, 4 or 8 bytes."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes from an address on."""
        ...

    def string(self, address: int, limit: int) -> bytes:
        """The bytes up to the NUL, without it, at most `limit`. No byte beyond them is touched."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Store a little-endian word of `size` bytes into scratch memory; any other address is BADADDR."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes into scratch memory; any other address is BADADDR."""
        ...

    def write_guest(self, address: int, data: bytes) -> None:
        """Write bytes into the guest's memory, for copyout and copyoutstr (destructive)."""
        ...


class GuestProfile(Protocol):
    """What is known about the guest's software. On a bare machine that is little; the profile of an operating system
    reads the kernel's own structures. `firing` has the CPU and its registers at the probe."""

    @property
    def description(self) -> str:
        """What identifies the thread of self-> variables, for -v."""
        ...

    def begin(self, forget: Callable[[int], None]) -> None:
        """A program uses self->: from now on, call `forget` with the key of each thread that ends. Called before the
        run."""
        ...

    def thread(self, firing: Firing) -> int:
        """A key for self->: the guest's current thread, or the CPU if that is not known."""
        ...

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """How the engine can identify threads by itself, by ranges of stack pointers; None: it cannot. `changed` is
        called when ranges that were returned no longer hold."""
        ...

    def integer(self, firing: Firing, name: str) -> int:
        """pid, ppid, tid, uid, gid, jid, ipl, errno, curthread and the like; 0 for what a bare machine does not
        have."""
        ...

    def string(self, firing: Firing, name: str) -> bytes:
        """execname (the image's file name), execargs, zonename, jailname, cwd or root."""
        ...

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        ...

    def user_registers(self, firing: Firing) -> Sequence[int] | None:
        """The registers of user mode in the order of the trap frame, even if the CPU is in the kernel now; None if the
        thread has no user mode."""
        ...

    def interrupted(self, sp: int) -> Sequence[int] | None:
        """The registers of interrupted kernel code, if the exception's entry code saved them at this stack pointer;
        else None."""
        ...

    def tasks(self) -> Sequence[TaskState]:
        """All tasks, read through the address space of the running CPU; empty if no operating system is known."""
        ...

    def why_not(self, name: str) -> str:
        """Why `integer` or `string` does not know a variable, as a line for the user; empty if it does, or if there is
        nothing to say."""
        ...


class Stacks(Protocol):
    """The stacks at a probe."""

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """Addresses for stack(), innermost first, at most `frames`."""
        ...

    def depth(self, firing: Firing) -> int:
        """stackdepth: the number of frames of the kernel's stack."""
        ...

    def caller(self, firing: Firing) -> int:
        """caller: the address that the current function returns to; 0 if unknown."""
        ...


class UserStacks(Protocol):
    """The stacks of user mode at a probe."""

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """Addresses for ustack(), innermost first; empty if the thread has no user mode."""
        ...

    def caller(self, firing: Firing) -> int:
        """ucaller: the address that the current user function returns to; 0 if unknown."""
        ...


class UserSymbols(Protocol):
    """The names of addresses of user mode, in the address space of the running CPU."""

    def stack(self, addresses: tuple[int, ...], frames: int, process: int) -> Stack:
        """What ustack() records. Where a program is known, addresses are its link addresses, which are the same in all
        processes that run it."""
        ...

    def symbol(self, address: int, kind: str, process: int) -> SymbolName:
        """What usym(), ufunc(), umod() or uaddr() records."""
        ...


class Symbols(Protocol):
    """The names of addresses."""

    def object_start(self, address: int, kind: str) -> int:
        """The `SymbolName.address` for a kind: the start of the function (sym, func) or of the module (mod) that holds
        the address; the address itself if nothing holds it, and for uaddr."""
        ...

    def describe(self, address: int, kind: str) -> str:
        """The text that dtrace prints: module`function+0x1c, without the offset if it is 0 or the kind is sym or func;
        module`0xaddress or 0xaddress if there is no symbol; only the module for mod and umod. For CALLER, the address
        after a call belongs to the function of the call even if another function begins there: a call that never
        returns may be the last instruction of its function."""
        ...


class Environment(Protocol):
    """Everything a compiled clause uses besides its own program's state."""

    @property
    def arch(self) -> ArchFacts:
        """The machine: names of registers (`R_...`), the PC."""
        ...

    @property
    def memory(self) -> Memory:
        """The guest's memory and D's scratch memory."""
        ...

    @property
    def stacks(self) -> Stacks:
        """The stacks at a probe."""
        ...

    @property
    def user_stacks(self) -> UserStacks:
        """The stacks of user mode at a probe."""
        ...

    @property
    def symbols(self) -> Symbols:
        """Names of addresses."""
        ...

    @property
    def user_symbols(self) -> UserSymbols:
        """Names of addresses of user mode."""
        ...

    @property
    def target(self) -> Callable[[Firing], int]:
        """What `$target` is where --exec says which processes are meant: the current one's number, or -1."""
        ...

    @property
    def locate(self) -> Callable[[int, int], int]:
        """A function from a link address, and the address of the code that refers to it, to its address now: the guest
        may have relocated itself."""
        ...

    @property
    def locate_beside(self) -> Mapping[str, Callable[[int, int], int]]:
        """The same for other images in the machine, by module. Such a function raises `Fault` if its image is not
        there."""
        ...

    @property
    def profile(self) -> GuestProfile:
        """What is known about the guest's software."""
        ...

    @property
    def now(self) -> Callable[[], int]:
        """Reads timestamp: the machine's time in ns."""
        ...

    @property
    def wall(self) -> Callable[[], int]:
        """Reads walltimestamp: ns since 1970."""
        ...

    @property
    def probe(self) -> Callable[[int], Probe | None]:
        """Gives the probe with an id; None if there is none."""
        ...

    @property
    def arguments(self) -> Callable[[int], Sequence[Argument] | None]:
        """Gives what a probe, by its identifier, says of its arguments; None: it does not say."""
        ...

    @property
    def records_time(self) -> bool:
        """Whether records carry the machine's time."""
        ...

    @property
    def snapshot(self) -> Callable[[bytes], None]:
        """Writes a snapshot of the guest at the probe that fires to a file of this name, the first time."""
        ...

    def option(self, name: str) -> int:
        """The value of a numeric run-time option: strsize, stackframes, ustackframes, jstackstrsize, dynvarsize, ..."""
        ...

    def uses_profile(self, name: str) -> None:
        """A clause that is compiled uses this variable of the profile: warn if the profile does not know it."""
        ...

    def exit(self, status: int) -> None:
        """exit(status): after this clause, clauses run only in END."""
        ...

    def fault(self, firing: Firing, clause: int, action: int, fault: Fault) -> None:
        """Record that a clause was aborted, and fire dtrace:::ERROR, unless it is ERROR's own clause."""
        ...

    def epid(self, clause: int, probe: int) -> int:
        """The builtin variable epid: the id of the enabling of this probe by this clause."""
        ...

    def destructive(self, firing: Firing, kind: str, argument: int) -> None:
        """Perform stop, raise, breakpoint, panic or chill (`kind`)."""
        ...
