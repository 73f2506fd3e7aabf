"""The rules of amd64: opcode, ModRM and prefixes -> kind, verdict, reason, flow; compiled to lookup arrays.

`PATTERNS` is the only place that knows what an instruction is. Its notation is the manual's (Intel SDM volume 2,
3.1.1): opcode bytes or a range of the last one; then ``/digit`` for the reg field of ModRM, ``mem`` or ``reg`` for the
form of its operand, or bytes for the whole ModRM. The first row whose opcode, ModRM and prefixes match wins. If none
matches, the instruction is `Kind.OTHER` and is copied, as are all of VEX, EVEX and XOP, which have no control flow.
"""

from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.amd64 import Kind
from kinst.targets.instruction import Flow, Reason, Verdict
from kinst.targets.values import dataclass


class Prefix(IntFlag):
    """Prefixes of an instruction, as far as they change what it is."""

    NONE = 0
    OPERAND = 1  # 66
    ADDRESS = 2  # 67
    REPNE = 4  # f2
    REP = 8  # f3
    LOCK = 16  # f0
    SEGMENT = 32  # 64 fs, 65 gs; the others mean nothing in 64-bit mode
    REX_B = 256  # 40-4f, only as the last prefix
    REX_X = 512
    REX_R = 1024
    REX_W = 2048
    NARROW = 4096  # 66 without REX.W: a 16-bit operand


def has(prefixes: NDArray[np.uint16], any_of: Prefix) -> NDArray[np.bool_]:
    """Which rows of a column of prefixes have at least one of these."""
    found: NDArray[np.bool_] = (prefixes & np.uint16(any_of)) != 0
    return found


REX = Prefix.REX_B | Prefix.REX_X | Prefix.REX_R | Prefix.REX_W


@dataclass(frozen=True, slots=True)
class Pattern:
    """One row: instructions whose encoding is `code` and whose prefixes include `needs` and none of `forbids`."""

    code: str
    kind: Kind
    verdict: Verdict
    flow: Flow = Flow.NEXT
    reason: Reason = Reason.NONE
    relative: int = 0  # bytes of the branch displacement, which ends the instruction
    needs: Prefix = Prefix.NONE
    forbids: Prefix = Prefix.NONE


def _emulated(
    code: str, kind: Kind, flow: Flow = Flow.NEXT, relative: int = 0, forbids: Prefix = Prefix.NARROW
) -> Pattern:
    """An instruction that is always emulated. LOCK makes it #UD: then it is copied, and faults in its trampoline."""
    return Pattern(code, kind, Verdict.EMULATE, flow, relative=relative, forbids=forbids | Prefix.LOCK)


def _copied(code: str, kind: Kind, flow: Flow = Flow.NEXT) -> Pattern:
    return Pattern(code, kind, Verdict.COPY, flow)


def _emulable(code: str, kind: Kind, flow: Flow = Flow.NEXT) -> Pattern:
    """An instruction that can be emulated. LOCK makes it #UD, as in `_emulated`."""
    return Pattern(code, kind, Verdict.COPY, flow, forbids=Prefix.LOCK)


def _refused(
    code: str,
    kind: Kind,
    reason: Reason,
    flow: Flow = Flow.NEXT,
    relative: int = 0,
    needs: Prefix = Prefix.NONE,
    forbids: Prefix = Prefix.NONE,
) -> Pattern:
    return Pattern(code, kind, Verdict.REFUSE, flow, reason, relative, needs, forbids)


def _narrow(code: str, flow: Flow) -> Pattern:
    """Near branches with a 16-bit operand: Intel ignores the prefix, AMD truncates RIP and shortens displacements."""
    return _refused(code, Kind.NARROW_FLOW, Reason.UNSUPPORTED, flow, needs=Prefix.NARROW, forbids=Prefix.LOCK)


PATTERNS = (
    # Near branches. They are emulated although a trampoline could hold them: FBT needs to know where a jump goes (a
    # tail call is a return), and no displacement can be out of reach.
    _narrow("70-7f", Flow.BRANCH),
    _narrow("0f 80-8f", Flow.BRANCH),
    _narrow("e0-e3", Flow.BRANCH),
    _narrow("e8", Flow.CALL),
    _narrow("e9", Flow.JUMP),
    _narrow("eb", Flow.JUMP),
    _narrow("c2-c3", Flow.RETURN),
    _narrow("ff /2", Flow.INDIRECT_CALL),
    _narrow("ff /4", Flow.INDIRECT_JUMP),
    _emulated("70-7f", Kind.BRANCH, Flow.BRANCH, relative=1),
    _emulated("0f 80-8f", Kind.BRANCH, Flow.BRANCH, relative=4),
    _emulated("e0-e2", Kind.LOOP, Flow.BRANCH, relative=1),
    _emulated("e3", Kind.COUNT_ZERO, Flow.BRANCH, relative=1),
    _emulated("e8", Kind.CALL, Flow.CALL, relative=4),
    _emulated("e9", Kind.JUMP, Flow.JUMP, relative=4),
    _emulated("eb", Kind.JUMP, Flow.JUMP, relative=1),
    _emulated("ff /2", Kind.CALL_INDIRECT, Flow.INDIRECT_CALL),
    _emulated("ff /4", Kind.JUMP_INDIRECT, Flow.INDIRECT_JUMP),
    _emulated("90", Kind.NOP, forbids=Prefix.REX_B | Prefix.REP),  # with REX.B: xchg %r8,%rax; with f3: pause
    _emulated("0f 1f", Kind.NOP, forbids=Prefix.NONE),
    # These are emulated only on request, or where there can be no trampoline. On amd64 a trampoline needs no second
    # trap, only a jump back, while each register written from Python takes 0.3 to 0.7 microseconds, and each access to
    # guest memory as much again.
    _emulable("50-57", Kind.PUSH),
    _emulable("58-5f", Kind.POP),
    _emulable("89 reg", Kind.MOVE),
    _emulable("8b reg", Kind.MOVE),
    _emulable("81 /0 reg", Kind.ADD),
    _emulable("83 /0 reg", Kind.ADD),
    _emulable("81 /5 reg", Kind.SUBTRACT),
    _emulable("83 /5 reg", Kind.SUBTRACT),
    _emulable("c9", Kind.LEAVE),
    _emulable("c2-c3", Kind.RETURN, Flow.RETURN),
    # Far transfers. These two give their full destination and never come back, so they are right in a trampoline.
    _copied("ff /5 mem", Kind.FAR_JUMP, Flow.INDIRECT_JUMP),
    _copied("ca-cb", Kind.FAR_RETURN, Flow.RETURN),
    _refused("ff /3 mem", Kind.FAR_CALL, Reason.UNSUPPORTED, Flow.INDIRECT_CALL),  # would push the trampoline's address
    # An interrupt that ends hlt sees the address after it, which maps back to the site as any other does.
    _copied("f4", Kind.HALT),
    # The image's own traps: its handler looks up the address, or reads the bytes there (Linux: is_valid_bugaddr).
    _refused("cc", Kind.BREAKPOINT, Reason.BREAKPOINT),
    _refused("f1", Kind.BREAKPOINT, Reason.BREAKPOINT),
    _refused("0f 0b", Kind.BREAKPOINT, Reason.BREAKPOINT, Flow.STOP),
    _refused("0f b9", Kind.BREAKPOINT, Reason.BREAKPOINT, Flow.STOP),
    _refused("0f ff", Kind.BREAKPOINT, Reason.BREAKPOINT, Flow.STOP),
    # CET: an indirect branch may land only here. Kernels also search for these bytes when they seal functions.
    _refused("0f 1e fa-fb", Kind.LANDING_PAD, Reason.LANDING_PAD, needs=Prefix.REP),
    # The address after these is recorded: pushed by int, put into rcx by syscall.
    _refused("cd", Kind.SYSTEM_CALL, Reason.SYSTEM_CALL),
    _refused("0f 05", Kind.SYSTEM_CALL, Reason.SYSTEM_CALL),
    _refused("0f 34", Kind.SYSTEM_CALL, Reason.SYSTEM_CALL),
    # iret also ends the blocking of NMIs, and Linux knows its iret by address when it faults (native_irq_return_iret).
    _refused("cf", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP),
    _refused("0f 07", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP),
    _refused("0f 35", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP),
    _refused("0f aa", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP),
    _refused("0f 01 ca", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP, needs=Prefix.REP),  # eretu
    _refused("0f 01 ca", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP, needs=Prefix.REPNE),  # erets
    _refused("0f 01 ec", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP, needs=Prefix.REP),  # uiret
    # SDM volume 3, 6.8.3 and 6.8.1: no interrupt before the next instruction has ended (sti; hlt. mov ss; mov rsp). The
    # jump at the end of the trampoline would use that up. cli, pushf and popf have no shadow, and the trampoline runs
    # with the guest's own flags: copied. (After a popf that sets TF the guest's debugger single-steps that jump as
    # well: it sees one step more.)
    _refused("fb", Kind.SHADOW, Reason.INTERRUPT_SHADOW),
    _refused("8e /2", Kind.SHADOW, Reason.INTERRUPT_SHADOW),
    # The FPU keeps the address of its last instruction (SDM volume 1, 8.1.8), which fxsave and fnstenv store. Control
    # instructions do not count: fldenv, fldcw, fnstenv, fnstcw, frstor, fnsave, fnstsw, fnclex, fninit.
    *(_copied(f"d9 /{digit} mem", Kind.OTHER) for digit in (4, 5, 6, 7)),
    *(_copied(f"dd /{digit} mem", Kind.OTHER) for digit in (4, 6, 7)),
    _copied("db e2-e3", Kind.OTHER),
    _copied("df e0", Kind.OTHER),
    _refused("d8-df", Kind.OTHER, Reason.RECORDED),
    # cr0.PG, cr3 and cr4.PAE decide what the trampoline's next fetch sees; with REX.R these are cr8 and reserved ones.
    _refused("0f 22 /0", Kind.TRANSLATION, Reason.TRANSLATION, forbids=Prefix.REX_R),
    _refused("0f 22 /3", Kind.TRANSLATION, Reason.TRANSLATION, forbids=Prefix.REX_R),
    _refused("0f 22 /4", Kind.TRANSLATION, Reason.TRANSLATION, forbids=Prefix.REX_R),
    # A breakpoint aborts a transaction. An abort goes to the target of xbegin, which is relative to xbegin.
    _refused("c7 f8", Kind.TRANSACTION, Reason.EXCLUSIVE, Flow.BRANCH, relative=4, forbids=Prefix.NARROW),
    _refused("c7 f8", Kind.TRANSACTION, Reason.EXCLUSIVE, Flow.BRANCH, relative=2),
    _refused("c6 f8", Kind.TRANSACTION, Reason.EXCLUSIVE),
    _refused("0f 01 d5", Kind.TRANSACTION, Reason.EXCLUSIVE),
)  # fmt: skip

# Index of the opcode arrays: map and last opcode byte. VEX has its map 1 to itself: vzeroall there has no ModRM.
ONE_BYTE, MAP_0F, MAP_0F38, MAP_0F3A, VEX_0F, VECTOR = (number << 8 for number in range(6))
_OPCODES = 6 << 8


def _opcode_mask(*ranges: tuple[int, int]) -> NDArray[np.bool_]:
    mask = np.zeros(_OPCODES, np.bool_)
    for first, last in ranges:
        mask[first : last + 1] = True
    return mask


# SDM volume 2, tables: all opcodes but those without a ModRM byte. mov to and from control and debug
# registers have one whose mod field is ignored: for finding memory operands they count as having none.
HAS_MEMORY_OPERAND = ~_opcode_mask(
    *((row << 4 | half | 4, row << 4 | half | 7) for row in range(4) for half in (0, 8)),  # ALU al/eax, immediate
    (0x40, 0x61), (0x64, 0x68), (0x6A, 0x6A), (0x6C, 0x7F), (0x90, 0xBF), (0xC2, 0xC3), (0xC8, 0xCF), (0xD4, 0xD7),
    (0xE0, 0xF5), (0xF8, 0xFD),
    (0x104, 0x10C), (0x10E, 0x10E), (0x120, 0x127), (0x130, 0x137), (0x177, 0x177), (0x180, 0x18F),
    (0x1A0, 0x1A2), (0x1A8, 0x1AA), (0x1C8, 0x1CF), (VEX_0F | 0x77, VEX_0F | 0x77),
)  # fmt: skip

LEA = 0x8D  # computes an address without using it
# Operations on one byte, among the one-byte opcodes: prefixes do not change their operand size.
IS_BYTE_OPERATION = _opcode_mask(
    *((row << 3 | low, row << 3 | low) for row in range(8) for low in (0, 2)),
    *((opcode, opcode) for opcode in (0x80, 0x84, 0x86, 0x88, 0x8A, 0xC0, 0xC6, 0xD0, 0xD2, 0xF6, 0xFE)),
)


def opcode_cells(code: str) -> NDArray[np.bool_]:
    """(opcodes, 256 ModRM bytes): where a pattern's `code` applies."""
    words = code.split()
    escape = MAP_0F if words[0] == "0f" else ONE_BYTE
    opcode, *rest = words[1:] if escape else words
    first, _, last = opcode.partition("-")
    cells = np.zeros((_OPCODES, 256), np.bool_)
    cells[escape | int(first, 16) : (escape | int(last or first, 16)) + 1] = _modrm_bytes(rest)
    return cells


def _modrm_bytes(words: list[str]) -> NDArray[np.bool_]:
    """ModRM: mod (7:6), reg (5:3), r/m (2:0). The words narrow all 256 down."""
    modrm = np.arange(256)
    chosen = np.ones(256, np.bool_)
    exact = np.zeros(256, np.bool_)
    for word in words:
        if word.startswith("/"):
            chosen &= (modrm >> 3 & 7) == int(word[1:])
        elif word in ("mem", "reg"):
            chosen &= (modrm >= 0xC0) == (word == "reg")
        else:
            first, _, last = word.partition("-")
            exact |= (modrm >= int(first, 16)) & (modrm <= int(last or first, 16))
    return chosen & exact if exact.any() else chosen


def _layers() -> tuple[NDArray[np.uint8], ...]:
    """The first, second, ... pattern (row + 1) of every opcode and ModRM; 0 where no pattern is left."""
    layers = [np.zeros((_OPCODES, 256), np.uint8)]
    for row, pattern in enumerate(PATTERNS, start=1):
        cells = opcode_cells(pattern.code)
        for layer in layers:
            free = cells & (layer == 0)
            layer[free] = row
            cells &= ~free
        if cells.any():
            layers.append(np.where(cells, np.uint8(row), np.uint8(0)))
    return tuple(layer.reshape(-1) for layer in layers)


_LAYERS = _layers()
_DEFAULT = Pattern("", Kind.OTHER, Verdict.COPY)
_BROKEN = Pattern("", Kind.UNDECODABLE, Verdict.REFUSE, Flow.STOP, Reason.UNDECODABLE)
_ROWS = (_DEFAULT, *PATTERNS, _BROKEN)
BROKEN = len(_ROWS) - 1
# What a pattern says, as columns: indexed by the numbers that `match_patterns` gives.
KIND = np.array([row.kind for row in _ROWS], np.uint8)
VERDICT = np.array([row.verdict for row in _ROWS], np.uint8)
REASON = np.array([row.reason for row in _ROWS], np.uint8)
FLOW = np.array([row.flow for row in _ROWS], np.uint8)
RELATIVE = np.array([row.relative for row in _ROWS], np.uint8)
_NEEDS = np.array([row.needs for row in _ROWS], np.uint16)
_FORBIDS = np.array([row.forbids for row in _ROWS], np.uint16)


def match_patterns(
    opcode: NDArray[np.intp], modrm: NDArray[np.uint8], prefixes: NDArray[np.uint16]
) -> NDArray[np.uint8]:
    """The pattern of each instruction, as an index of `KIND` and its like; 0 is the default, a plain copy."""
    key = (opcode << 8) | modrm
    found = _LAYERS[0].take(key)
    for layer in (*_LAYERS[1:], None):
        wrong = np.flatnonzero(((prefixes & _FORBIDS.take(found)) | (~prefixes & _NEEDS.take(found))) != 0)
        if wrong.size == 0:
            break
        found[wrong] = 0 if layer is None else layer[key[wrong]]
    return found
