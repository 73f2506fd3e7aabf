"""The subroutines that D programs call, by name. Arguments and results are values as `kinst.runtime.dlang.program`
describes them. Arguments already have the parameters' types; those that a call leaves out are left out here.

A NULL string is the number 0, as an argument and as a result: reading it is BADADDR, but strtok() continues with it.
Subroutines that need structures of an illumos or FreeBSD kernel (locks, STREAMS messages, devices) raise Fault ILLOP.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol

from kinst.runtime.clauses import inet, json_path
from kinst.runtime.clauses import text_functions as text
from kinst.runtime.clauses.environment import Memory
from kinst.runtime.trap.faults import Fault, FaultKind

Subroutine = Callable[..., int | bytes]
_WORD: Final = (1 << 64) - 1
_CHUNK: Final = 1 << 16  # bytes copied at once: a copy of 2**60 bytes faults in the guest before it fills our memory
_LONGEST: Final = 16 << 20  # bytes of strjoin()'s result, if strsize is larger: a string may double in each clause
_LONGEST_MEMSTR: Final = 4096  # bytes: FreeBSD's sysctl kern.dtrace.memstr_max
NULLABLE: Final = frozenset({"json", "strchr", "strrchr", "strstr", "strtok"})  # those that may return NULL
_OF_TWO: Final = frozenset({"index", "json", "rindex", "strjoin", "strstr"})  # those that take two texts
_UNKNOWN: Final = (
    "ddi_pathname", "msgsize", "msgdsize", "mutex_owned", "mutex_owner", "mutex_type_adaptive", "mutex_type_spin",
    "rw_read_held", "rw_write_held", "rw_iswriter", "sx_shared_held", "sx_exclusive_held", "sx_isexclusive",
)  # fmt: skip


class Scratch(Protocol):
    """Memory that lasts for a clause. `kinst.runtime.clauses.scratch.Scratch` implements it."""

    def allocate(self, size: int) -> int:
        """The address of `size` zero bytes. Raises Fault NOSCRATCH."""
        ...


class SubroutineEnvironment(Protocol):
    """What subroutines use of `kinst.runtime.clauses.environment.Environment`."""

    @property
    def memory(self) -> Memory:
        """The guest's memory and D's scratch memory."""
        ...


@dataclass(slots=True)
class Context:
    """The state of subroutines between calls. Random numbers are the same in every session, so that a run can be
    repeated."""

    tokens: text.Tokens = field(default_factory=text.Tokens)
    random: int = 0x9E37_79B9_7F4A_7C15

    def begin(self) -> None:
        """Begin a firing: strtok(NULL) has nothing to continue."""
        self.tokens.forget()

    def rand(self) -> int:
        """A pseudo-random number of 31 bits: Marsaglia's xorshift64*, its upper half."""
        state = self.random
        state ^= state >> 12
        state ^= state << 25 & _WORD
        state ^= state >> 27
        self.random = state
        return (state * 0x2545_F491_4F6C_DD1D & _WORD) >> 33


def table(
    environment: SubroutineEnvironment, scratch: Scratch, strings: int, context: Context | None = None
) -> Mapping[str, Subroutine]:
    """All subroutines but speculation(). `strings` is the option strsize in bytes."""
    state = context or Context()
    return {
        **_on_numbers(strings, state),
        **_on_text(strings, state),
        **_on_memory(environment.memory, scratch, strings),
        **_on_addresses(environment.memory, strings),
        **{name: _unknown(name) for name in _UNKNOWN},
    }


def _on_numbers(strings: int, state: Context) -> dict[str, Subroutine]:
    subroutines: dict[str, Subroutine] = {
        "getf": lambda _: 0,  # no process, no open files
        # Of illumos' dev_t on 64-bit kernels: 32 bits each, the major number in the upper half.
        "getmajor": lambda device: device >> 32 & 0xFFFF_FFFF,
        "getminor": lambda device: device & 0xFFFF_FFFF,
        "lltostr": lambda value, base=10: text.lltostr(value, base)[:strings],
        "progenyof": lambda process: int(process == 0),  # all descend from process 0
        "rand": state.rand,
    }
    for size, letter in ((2, "s"), (4, "l"), (8, "ll")):
        swap = _swap(size)
        subroutines["hton" + letter] = subroutines["ntoh" + letter] = swap
    return subroutines


def _swap(size: int) -> Subroutine:
    return lambda value: inet.swap(value, size)


def _on_text(strings: int, state: Context) -> dict[str, Subroutine]:
    longest = strings - 1
    subroutines: dict[str, Subroutine] = {
        "basename": lambda path: text.basename(path)[:longest],
        "cleanpath": lambda path: text.cleanpath(path, strings),
        "dirname": lambda path: text.dirname(path)[:longest],
        "index": text.index,
        "json": json_path.select,
        "rindex": text.rindex,
        "strchr": text.strchr,
        "strjoin": lambda first, second: text.strjoin(first, second, min(strings, _LONGEST)),
        "strlen": len,
        "strrchr": text.strrchr,
        "strstr": text.strstr,
        "strtoll": text.strtoll,
        "substr": lambda value, start, length=None: text.substr(value, start, length, strings),
        "tolower": lambda value: value[:longest].lower(),
        "toupper": lambda value: value[:longest].upper(),
    }

    def strtok(value: bytes | int, delimiters: bytes | int) -> bytes | int:
        return state.tokens.next(value, text.present(delimiters), max(strings, 2))

    return {
        "strtok": strtok,
        **{name: _of_one(subroutine) for name, subroutine in subroutines.items() if name not in _OF_TWO},
        **{name: _of_two(subroutine) for name, subroutine in subroutines.items() if name in _OF_TWO},
    }


def _of_one(subroutine: Subroutine) -> Subroutine:
    return lambda value, *rest: subroutine(text.present(value), *rest)


def _of_two(subroutine: Subroutine) -> Subroutine:
    return lambda first, second, *rest: subroutine(text.present(first), text.present(second), *rest)


def _on_memory(memory: Memory, scratch: Scratch, strings: int) -> dict[str, Subroutine]:
    def copyin(address: int, size: int) -> int:
        destination = scratch.allocate(size & _WORD)
        memory.write(destination, memory.read(address, size & _WORD))
        return destination

    def copyinstr(address: int, longest: int = strings) -> bytes:
        longest &= _WORD
        return memory.string(address, longest if longest < strings else strings - 1)

    def copyoutstr(source: int | bytes, address: int, size: int) -> int:
        content = source if isinstance(source, bytes) else memory.string(source, min(size & _WORD, strings))
        memory.write_guest(address, (content + b"\0")[: size & _WORD])
        return 0

    def memref(address: int, size: int) -> int:
        reference = scratch.allocate(16)
        memory.store(reference, 8, address & _WORD)
        memory.store(reference + 8, 8, size & _WORD)
        return reference

    def memstr(address: int, separator: int, size: int) -> bytes:
        if not 0 <= size <= _LONGEST_MEMSTR:
            raise Fault(FaultKind.ILLOP)
        content = memory.read(address, size - 1) if size else b""
        return content.replace(b"\0", bytes([separator & 0xFF])).partition(b"\0")[0][:strings]

    return {
        "alloca": lambda size: scratch.allocate(size & _WORD),
        "bcopy": lambda source, to, size: _copy(memory.read, source, memory.write, to, size & _WORD),
        "copyin": copyin,
        "copyinstr": copyinstr,
        "copyinto": lambda source, size, to: _copy(memory.read, source, memory.write, to, size & _WORD),
        "copyout": lambda source, to, size: _copy(memory.read, source, memory.write_guest, to, size & _WORD),
        "copyoutstr": copyoutstr,
        "memref": memref,
        "memstr": memstr,
    }


def _copy(
    read: Callable[[int, int], bytes], source: int, write: Callable[[int, bytes], None], to: int, size: int
) -> int:
    """Copy `size` bytes in pieces. A piece that cannot be read or written is a fault."""
    for done in range(0, size, _CHUNK):
        piece = min(_CHUNK, size - done)
        write(to + done, read(source + done, piece))
    return 0


def _on_addresses(memory: Memory, strings: int) -> dict[str, Subroutine]:
    def inet_ntop(family: int, address: int) -> bytes:
        return inet.presentation(family, memory.read(address, inet.check_family(family)))[:strings]

    def inet_ntoa6(address: int) -> bytes:
        content = memory.read(address, 16)
        inner = inet.embedded(content)
        return (inet.colons(content) if inner is None else inet.dotted(inner))[:strings]

    return {
        "inet_ntoa": lambda address: inet.dotted(memory.read(address, 4))[:strings],
        "inet_ntoa6": inet_ntoa6,
        "inet_ntop": inet_ntop,
    }


def _unknown(name: str) -> Subroutine:
    def fail(*_: int | bytes) -> NoReturn:
        raise Fault(FaultKind.ILLOP, text=f"{name}() asks a kernel that this machine does not have")

    return fail
