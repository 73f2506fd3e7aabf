"""How many of DTrace's actions one of ours stands for, how many bytes its data take in a record, and how much print()
writes of them.

Both are visible to users: ERROR's arg2 and error messages count actions, and bufsize, specsize and drops count bytes.
So they follow libdtrace's dt_cc.c and the kernel's dtrace_ecb_resize(), and not our own records.
"""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Action, Expression, Recording
from kinst.runtime.dlang.types.conversions import size_of
from kinst.runtime.dlang.types.types import LONG, DType, Dynamic, String, bare
from kinst.targets.c_types import Aggregate, Array, strip

HEADER: Final = 12  # bytes: epid and time, as words of 4 bytes
FRAMES: Final = 20  # the default of the options stackframes and ustackframes
WORD: Final = 8
PRINTED: Final = 1 << 17  # values that one print() writes at most: its text is hundreds of times as long as its record
_HALF: Final = 4
_USER_SYMBOLS: Final = frozenset({"usym", "ufunc", "umod", "uaddr"})  # with the process id
_NO_ARGUMENT: Final = program.Integer(LONG, 0)  # what printf("text") records


def action_count(action: Action) -> int:
    """How many of DTrace's action numbers an action takes. An aggregation takes one for its id, one for each key, one
    for the increment and one for the function; printf takes one for each argument."""
    match action:
        case program.Aggregate(keys=keys, increment=increment):
            return len(keys) + 2 + (increment is not None)
        case program.Printf(arguments=arguments):
            return max(1, len(arguments))
        case program.Printa(aggregations=aggregations):
            return len(aggregations)
        case program.TraceMemory(dynamic=dynamic):
            return 1 if dynamic is None else 2
        case program.ChangeAggregation(argument=argument):
            return 1 if argument is None else 2
        case program.SetOption():
            return 2  # an option without a value records an empty one
        case _:
            return 1


def record_size(actions: Sequence[Action], string_size: int, frames: int = FRAMES) -> int:
    """The bytes of a clause's record with its header. Each value is aligned to its size, at most to a word, and so is
    the record. An empty list is the default action, which records the header. speculate() alone also records the
    header, into the speculation. Other actions without data make no record: 0. `frames`: the number for a stack that
    has none."""
    is_default = not actions or (len(actions) == 1 and isinstance(actions[0], program.Speculate))
    if not is_default and all(isinstance(action, program.Unrecorded) for action in actions):
        return 0
    end, widest = HEADER, _HALF
    for action in actions:
        if isinstance(action, program.Unrecorded):
            continue
        for size in _sizes(action, string_size, frames):
            alignment = min(WORD, size & -size) or 1
            widest = max(widest, alignment)
            end = _aligned(end, alignment) + size
    return _aligned(end, widest)


def _aligned(end: int, alignment: int) -> int:
    return -(-end // alignment) * alignment


def _sizes(action: Recording, string_size: int, frames: int) -> Iterator[int]:
    match action:
        case program.Printf(arguments=arguments):
            yield from (_size(argument, string_size, frames) for argument in arguments or (_NO_ARGUMENT,))
        case program.Trace(value=value) | program.Print(value=value) | program.SymbolTrace(key=value):
            yield _size(value, string_size, frames)
        case program.TraceMemory(size=size):
            yield from [WORD] * (action_count(action) - 1)
            yield size
        case program.PrintMemory(size=size):
            yield size + WORD
        case program.StackTrace(is_user=is_user, frames=wanted, string_size=text):
            yield _stack_size(frames if wanted is None else wanted, is_user=is_user) + text
        case _:
            yield from _sizes_performed(action, string_size, frames)


def _sizes_performed(action: program.Performed, string_size: int, frames: int) -> Iterator[int]:
    match action:
        case program.SetOption(arguments=arguments):
            yield from (_size(argument, string_size, frames) for argument in (*arguments, _NO_ARGUMENT)[:2])
        case program.Exit():
            yield 4
        case program.Printa() | program.ChangeAggregation() | program.Truncate():
            yield from [WORD] * action_count(action)
        case _:
            assert_never(action)


def _size(value: Expression, string_size: int, frames: int) -> int:
    match value:
        case program.StackKey(is_user=is_user, frames=wanted):
            return _stack_size(frames if wanted is None else wanted, is_user=is_user)
        case program.SymbolKey(kind=kind):
            return 2 * WORD if kind in _USER_SYMBOLS else WORD
        case _:
            return size_of(value.type, string_size)


def _stack_size(frames: int, *, is_user: bool) -> int:
    """The bytes of a stack's frames. A user's stack has the process id before them."""
    return WORD * (frames + is_user)


def printed_values(actions: Sequence[Action], string_size: int) -> int:
    """The values that print() writes for a record, at most `PRINTED` for each action. They follow from the types, and
    not from the size of the record: unions and bit-fields show the same bytes several times."""
    return sum(_values(action.type, string_size, PRINTED) for action in actions if isinstance(action, program.Print))


def _values(kind: DType, string_size: int, most: int) -> int:
    """The number of values in a value of this type. Counting stops at `most`, so that nested arrays of huge structs
    cost nothing."""
    plain = bare(kind)
    if isinstance(plain, String):
        return min(string_size, most)
    match None if isinstance(plain, Dynamic) else strip(plain):
        case Array(element=element, length=length):
            return min((length or 0) * _values(element, string_size, most) + 1, most)
        case Aggregate(members=members):
            total = 1
            for member in members or ():
                total += _values(member.type, string_size, most - total) if total < most else 0
            return total
        case _:
            return 1
