"""riscv64: what is done before a site's instruction -> code. Only atomic instructions (Zaamo) touch what CPUs share."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from kinst.rewriter.arch.patterns import distance
from kinst.rewriter.patching.riscv64 import encode
from kinst.rewriter.standalone.code import word_tasks
from kinst.rewriter.standalone.code.parts import Parts
from kinst.rewriter.standalone.code.scratch import Scratch
from kinst.rewriter.standalone.code.template import Assembly, assembled
from kinst.rewriter.standalone.code.trampoline import Masks, Record, Task
from kinst.rewriter.standalone.code.word_tasks import Dialect, Routine
from kinst.rewriter.standalone.riscv64 import reads
from kinst.rewriter.standalone.riscv64.fixups import address_fixup, number_fixup
from kinst.rewriter.standalone.riscv64.short import shortened
from kinst.targets.arch.riscv64 import GENERAL, PC, RISCV64, SP
from kinst.targets.standalone import PATIENCE, ROOM

# Without sp, gp, tp and s0: interrupt handlers find the CPU, its globals and its frames by them.
_USABLE: Final = tuple(
    map(
        GENERAL.index, (*(f"t{n}" for n in range(7)), *(f"a{n}" for n in range(7, -1, -1)), *GENERAL[18:28], "s1", "ra")
    )
)
_COUNT: Final = Routine(
    ("cell", "one"),
    """
    la {cell}, cell
    li {one}, 1
    amoadd.d zero, {one}, ({cell})
""",
)
# Record n is in place n modulo the capacity, a power of two: the lowest bits of n. A writer that finds the highest bit
# of the place's first word set, since another still writes there, takes the place that is never read. The fence orders
# the words before the ticket, which readers on other harts look for (RVWMO keeps no order of stores to different
# addresses).
_RECORD: Final = Routine(
    ("ring", "ticket", "place"),
    """
    la {ring}, ring
    li {place}, 1
    amoadd.d {ticket}, {place}, ({ring})
    {wait}
    {index}
    li {ring}, {stride}
    mul {place}, {place}, {ring}
    la {ring}, first
    add {place}, {place}, {ring}
    li {ring}, 1
    slli {ring}, {ring}, 63
    amoor.d {ring}, {ring}, ({place})
    {discard}
    {memory}
    {words}
    addi {ticket}, {ticket}, 1
    fence
    sd {ticket}, 0({place})
""",
)


def needed(task: Task, dead: Masks) -> Masks:
    """See `CodeGenerator.needed`."""
    return word_tasks.needed(_DIALECT, task, dead)


def task_code(task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
    """See `CodeGenerator.task`."""
    assembly, dialect = (_SHORT, _SHORT_DIALECT) if is_compact else (_PLAIN, _DIALECT)
    return assembled(assembly, word_tasks.task_text(dialect, task, dead, has_stack=has_stack))


def _index(place: str, ticket: str, mask: int) -> str:
    """By two shifts: andi takes masks of 11 bits only."""
    unused = 64 - mask.bit_length()
    return f"slli {place}, {ticket}, {unused}\nsrli {place}, {place}, {unused}" if mask else f"li {place}, 0"


def _free(assembly: Assembly, names: Mapping[str, str], frame: int) -> reads.Free:
    """Branches count in bytes, so it matters which lines have a short form."""
    base, ticket, place = (names[role] for role in _RECORD.roles)
    return reads.Free(base, ticket, place, frame, lambda lines: len(assembly.encode(lines)))


def _wait(assembly: Assembly, task: Record, names: Mapping[str, str]) -> str:
    """Until there is room, or patience is gone: `kinst.targets.standalone`."""
    if not task.waits:
        return ""
    ring, ticket, place = (names[role] for role in _RECORD.roles)
    free, is_done = _free(assembly, names, 0), f"bge {place}, zero"
    look = [f"ld {place}, {ROOM}({ring})", f"add {place}, {place}, {ticket}"]
    less = [f"ld {place}, {PATIENCE}({ring})", f"addi {place}, {place}, -1", f"sd {place}, {PATIENCE}({ring})"]
    back = free.size("\n".join([*look, f"{is_done}, 8", *less]))
    return "\n".join(
        [*look, *free.over(is_done, *less, f"{is_done}, {-back & _ADDRESSES}", f"sd zero, {ROOM}({ring})")]
    )


def _discard(assembly: Assembly, task: Record, names: Mapping[str, str]) -> str:
    """From the place of a ticket to the one that is never read, unless the place was free. There the ticket is not
    needed any more."""
    base, ticket, place = (names[role] for role in _RECORD.roles)
    lines = [
        *_index(base, ticket, task.mask).splitlines(),
        f"li {ticket}, {task.mask + 1}",
        f"sub {base}, {ticket}, {base}",
        f"li {ticket}, {task.stride}",
        f"mul {base}, {base}, {ticket}",
        f"add {place}, {place}, {base}",
    ]
    return "\n".join(_free(assembly, names, 0).over(f"bge {base}, zero", *lines))


def _memory(assembly: Assembly, task: Record, names: Mapping[str, str], frame: int, *, has_stack: bool) -> str:
    return reads.of_memory(task, _free(assembly, names, frame), has_stack=has_stack)


def _constant(register: str, value: int) -> str:
    return "\n".join(_number_in(register, distance(0, value)))


def _number_in(register: str, value: int) -> list[str]:
    """li; beyond 32 bits the upper part, a shift, and the lower 12 bits, which addi takes as a signed number."""
    if -(1 << 31) <= value < 1 << 31:
        return [f"li {register}, {value}"]
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    upper = [*_number_in(register, value - low >> 12), f"slli {register}, {register}, 12"]
    return [*upper, f"addi {register}, {register}, {low}"] if low else upper


def _save(chosen: Scratch) -> tuple[list[str], list[str]]:
    places = [f"{GENERAL[number]}, {chosen.place(number)}(sp)" for number in chosen.saved]
    down, up = f"addi sp, sp, -{chosen.frame}", f"addi sp, sp, {chosen.frame}"
    return [down, *(f"sd {place}" for place in places)], [*(f"ld {place}" for place in places), up]


def _encoded(lines: str) -> bytes:
    return b"".join(encode(line, 0) for line in lines.splitlines())


def _encoded_short(lines: str) -> bytes:
    return b"".join(shortened(encode(line, 0)) for line in lines.splitlines())


_PLAIN: Final = Assembly(_encoded, address_fixup, number_fixup, RISCV64.operand_registers)
_SHORT: Final = replace(_PLAIN, encode=_encoded_short)
_ADDRESSES: Final = (1 << 64) - 1
_DIALECT: Final = Dialect(
    usable=_USABLE,
    registers=GENERAL,
    pc=PC,
    stack_pointer=SP,
    unrecordable={},
    count=_COUNT,
    record=_RECORD,
    spare="ring",
    wait=partial(_wait, _PLAIN),
    index=_index,
    discard=partial(_discard, _PLAIN),
    memory=partial(_memory, _PLAIN),
    constant=_constant,
    address="la {register}, {name}",
    number="number {register}, {name}",
    clock="csrr {register}, time",
    cpu="csrr {register}, mhartid",
    stack="addi {register}, sp, {offset}",
    load_saved="ld {register}, {offset}(sp)",
    store="sd {register}, {offset}({place})",
    save=_save,
)
_SHORT_DIALECT: Final = replace(
    _DIALECT, wait=partial(_wait, _SHORT), discard=partial(_discard, _SHORT), memory=partial(_memory, _SHORT)
)
