"""arm64: what is done before a site's instruction -> code. All CPUs have these instructions; LSE atomics only some.

No flag is touched. A guest may wait (wfe) until a word that it read by a load-exclusive changes. The counter's own
load-exclusive moves the monitor to another address, so no write of that word would wake the guest: sevl makes its next
wfe return at once, as an interrupt would (Arm ARM, "Wait for Event mechanism and Send event").
"""

from collections.abc import Mapping
from typing import Final

from kinst.rewriter.assemble import assemble
from kinst.rewriter.standalone.arm64 import reads
from kinst.rewriter.standalone.arm64.fixups import address_fixup, number_fixup
from kinst.rewriter.standalone.code import scratch, word_tasks
from kinst.rewriter.standalone.code.parts import TARGET, Parts
from kinst.rewriter.standalone.code.scratch import Scratch
from kinst.rewriter.standalone.code.template import Assembly, assembled
from kinst.rewriter.standalone.code.trampoline import Masks, Record, Shape, Task
from kinst.rewriter.standalone.code.word_tasks import Dialect, Routine
from kinst.targets.arch.arm64 import ARM64, PC, PSTATE, SP
from kinst.targets.standalone import PATIENCE, ROOM, WORD

# Without the platform register x18 and the frame pointer: interrupt handlers find threads and frames by them.
_USABLE: Final = (*range(9, 16), 8, 16, 17, *range(7, -1, -1), *range(19, 29), 30)
_COUNT: Final = Routine(
    ("cell", "number", "failed"),
    """
    la x{cell}, cell
again:
    ldxr x{number}, [x{cell}]
    add x{number}, x{number}, #1
    stxr w{failed}, x{number}, [x{cell}]
    cbnz w{failed}, again
    sevl
""",
)
# Record n is in place n modulo the capacity, a power of two: the lowest bits of n. A writer that finds the highest bit
# of the place's first word set, since another still writes there, takes the place that is never read. The barrier
# orders the words before the ticket, which readers on other CPUs look for.
_RECORD: Final = Routine(
    ("ring", "ticket", "place", "spare"),
    """
    la x{ring}, ring
again:
    ldxr x{ticket}, [x{ring}]
    add x{place}, x{ticket}, #1
    stxr w{spare}, x{place}, [x{ring}]
    cbnz w{spare}, again
    {wait}
    {index}
    mov x{spare}, #{stride}
    la x{ring}, first
    madd x{place}, x{place}, x{spare}, x{ring}
claim:
    ldxr x{spare}, [x{place}]
    tbnz x{spare}, #63, taken
    orr x{spare}, x{spare}, #0x8000000000000000
    stxr w{ring}, x{spare}, [x{place}]
    cbnz w{ring}, claim
    b claimed
taken:
    {discard}
claimed:
    {memory}
    {words}
    add x{ticket}, x{ticket}, #1
    dmb ish
    str x{ticket}, [x{place}]
    sevl
""",
)


def needed(task: Task, dead: Masks) -> Masks:
    """See `CodeGenerator.needed`."""
    return word_tasks.needed(_DIALECT, task, dead)


def task_code(task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
    """See `CodeGenerator.task`."""
    del is_compact
    return assembled(_ASSEMBLY, word_tasks.task_text(_DIALECT, task, dead, has_stack=has_stack))


def load(shape: Shape, what: str, base: int | None) -> Parts:
    """``ldr x0``, say, from the instruction's target, through a register; None: through any that is free."""
    free = scratch.scratch(1, _USABLE, shape.dead, has_stack=shape.has_stack) if base is None else Scratch((base,), ())
    (number,) = free.registers
    text = f"la x{number}, {TARGET}\n{what}, [x{number}]"
    return assembled(_ASSEMBLY, word_tasks.with_saved(_DIALECT, free, text))


def _wait(task: Record, names: Mapping[str, str]) -> str:
    """Until there is room, or patience is gone: `kinst.targets.standalone`."""
    if not task.waits:
        return ""
    ring, ticket, place, _ = (f"x{names[role]}" for role in _RECORD.roles)
    return f"""
look:
    ldr {place}, [{ring}, #{ROOM}]
    add {place}, {place}, {ticket}
    tbz {place}, #63, go
    ldr {place}, [{ring}, #{PATIENCE}]
    sub {place}, {place}, #1
    str {place}, [{ring}, #{PATIENCE}]
    tbz {place}, #63, look
    str xzr, [{ring}, #{ROOM}]
go:
"""


def _index(place: str, ticket: str, mask: int) -> str:
    return f"and x{place}, x{ticket}, #{mask}" if mask else f"mov x{place}, xzr"


def _discard(task: Record, names: Mapping[str, str]) -> str:
    """From the place of a ticket to the one that is never read: as many places further as the ring has after it."""
    ring, _, place, spare = (f"x{names[role]}" for role in _RECORD.roles)
    return f"""
    {_index(names["spare"], names["ticket"], task.mask)}
    mov {ring}, #{task.mask + 1}
    sub {spare}, {ring}, {spare}
    mov {ring}, #{task.stride}
    madd {place}, {spare}, {ring}, {place}
"""


def _memory(task: Record, names: Mapping[str, str], frame: int, *, has_stack: bool) -> str:
    ring, ticket, place, spare = (f"x{names[role]}" for role in _RECORD.roles)
    return reads.of_memory(task, reads.Free(ring, spare, ticket, place, frame), has_stack=has_stack)


def _constant(register: str, value: int) -> str:
    """movz, and movk of what else is not zero: 16 bits at a time (C6.2.226, C6.2.227)."""
    parts = [(half * 16, value >> half * 16 & 0xFFFF) for half in range(4)]
    more = [f"movk x{register}, #{part}, lsl #{shift}" for shift, part in parts[1:] if part]
    return "\n".join([f"movz x{register}, #{parts[0][1]}", *more])


def _save(chosen: Scratch) -> tuple[list[str], list[str]]:
    """In pairs where there are two: one access for both."""
    saved = [f"x{number}" for number in chosen.saved]
    pairs = [(", ".join(saved[row : row + 2]), row * WORD) for row in range(0, len(saved), 2)]
    moves = [f"{'p' if ',' in names else 'r'} {names}, [sp, #{offset}]" for names, offset in pairs]
    down, up = f"sub sp, sp, #{chosen.frame}", f"add sp, sp, #{chosen.frame}"
    return [down, *(f"st{move}" for move in moves)], [*(f"ld{move}" for move in moves), up]


def _encoded(lines: str) -> bytes:
    return assemble(ARM64, lines)


_ASSEMBLY: Final = Assembly(_encoded, address_fixup, number_fixup, ARM64.operand_registers)
_DIALECT: Final = Dialect(
    usable=_USABLE,
    registers=tuple(map(str, range(31))),
    pc=PC,
    stack_pointer=SP,
    unrecordable={PSTATE: "pstate"},
    count=_COUNT,
    record=_RECORD,
    spare="spare",
    wait=_wait,
    index=_index,
    discard=_discard,
    memory=_memory,
    constant=_constant,
    address="la x{register}, {name}",
    number="number x{register}, {name}",
    clock="mrs x{register}, cntvct_el0",
    cpu="mrs x{register}, mpidr_el1",
    stack="add x{register}, sp, #{offset}",
    load_saved="ldr x{register}, [sp, #{offset}]",
    store="str x{register}, [x{place}, #{offset}]",
    save=_save,
)
