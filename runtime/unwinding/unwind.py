"""The unwind rule for the code at an address: by call frame information, or else from the code itself.

The code of each function is read once: its instructions are followed along all branches from the entry, with their
effects on the stack pointer, the frame pointer and the return address. So prologues and epilogues are recognised
without debug information, and functions without a frame pointer have frames as well.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np

from kinst.rewriter.program import Program
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.debuginfo.call_frames import CallFrames, FrameRow, Lost, Moved, RegisterRule, Saved
from kinst.targets.functions.found import Functions
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.values import dataclass

LINK: Final = "link"  # the return address is in the link register
LOST: Final = "lost"  # it was not kept: the function never returns
_MASK: Final = (1 << 64) - 1
_SWITCHES_BACK: Final = 64  # bytes after a call on another stack within which the code returns to its own
_LONGEST_CALL: Final = 16  # bytes
_LONGEST: Final = 1 << 16  # bytes of a function that is followed; anything longer is a table, or no function


@dataclass(frozen=True, slots=True)
class FrameState:
    """What is known before an instruction. Offsets are in bytes. The CFA is the stack pointer before the call (arm64,
    riscv64: at entry)."""

    sp: int | None  # CFA - stack pointer; None: unknown, since the function computes it
    fp: int | None = None  # CFA - frame pointer; None: it holds something else
    returns: int | str = LINK  # where the return address is, from the CFA; LINK or LOST
    saved_fp: int | None = None  # where the caller's frame pointer is, from the CFA; None: still in the register
    constant: tuple[int, int] | None = None  # a register and its value: large frames are allocated with one
    # The register that points to where the stack pointer was stored. If it is the stack pointer itself, the code is on
    # another stack, whose top word is the former stack pointer, and `sp` is about that one.
    stored_sp: int | None = None
    is_guess: bool = False  # no branch leads there: this is the usual state in the function

    def moved(self, amount: int | None) -> "FrameState":
        """The stack pointer was changed by `amount`; None: by an unknown amount."""
        return replace(self, sp=None if self.sp is None or amount is None else self.sp - amount)

    def stored_return(self, at: int) -> "FrameState":
        """The return address was stored at the stack pointer + `at`."""
        if self.sp is None or self.returns != LINK:
            return self
        return replace(self, returns=at - self.sp)

    def loaded_return(self, at: int) -> "FrameState":
        """The link register was loaded from the stack pointer + `at`."""
        is_same = self.sp is not None and self.returns == at - self.sp
        return replace(self, returns=LINK) if is_same else self

    def stored_fp(self, at: int) -> "FrameState":
        """The frame pointer was stored at the stack pointer + `at`. The first time, this is the caller's."""
        if self.sp is None or self.saved_fp is not None or self.fp is not None:
            return self
        return replace(self, saved_fp=at - self.sp)

    def loaded_fp(self, at: int) -> "FrameState":
        """The frame pointer was loaded from the stack pointer + `at`."""
        is_same = self.sp is not None and self.saved_fp == at - self.sp
        return replace(self, saved_fp=None, fp=None) if is_same else replace(self, fp=None)

    def with_fp(self, above_sp: int) -> "FrameState":
        """The frame pointer was set to the stack pointer + `above_sp`."""
        return replace(self, fp=None if self.sp is None else self.sp - above_sp)

    def sp_from_fp(self, above_fp: int) -> "FrameState":
        """The stack pointer was set to the frame pointer + `above_fp`."""
        return replace(self, sp=None if self.fp is None else self.fp - above_fp)


class StackEffects(Protocol):
    """One machine's stack. `kinst.runtime.unwinding.arch.<machine>` implements it."""

    def step(self, instruction: bytes, frame: FrameState) -> FrameState:
        """The frame after an instruction that is not a call."""
        ...

    @property
    def stack_restore(self) -> bytes:
        """The instruction that loads the stack pointer from the top of the stack; empty if none is used so. A function
        that makes calls on another stack stores its own stack pointer at the top of that, and returns to it this
        way."""
        ...

    def call_sizes(self, before: bytes) -> tuple[int, ...]:
        """The sizes of the calls with which the bytes before an address may end; empty if they end with none."""
        ...


def at_entry(arch: ArchFacts) -> FrameState:
    """The frame at the first instruction of a function."""
    pushed = arch.pushed_return
    return FrameState(sp=pushed, returns=-pushed if arch.link_register is None else LINK)


def plain_address(arch: ArchFacts, address: int) -> int:
    """A return address without a pointer authentication code."""
    width = arch.unwind.signed_above
    if width is None:
        return address
    # Bit 55 selects the half of the address space and is never part of the code: above the address all bits equal it
    # (Arm ARM, pointer authentication).
    low = (1 << width) - 1
    return address | _MASK ^ low if address >> 55 & 1 else address & low


class Rule(NamedTuple):
    """How to unwind one frame. Offsets are from the CFA."""

    base: int  # index of the register that the CFA is relative to
    offset: int
    returns: int | None  # where the return address is; None: in `register`
    register: int
    saved_fp: int | None  # where the caller's frame pointer is; None: still in the register
    is_certain: bool  # from call frame information; else the return address must follow a call


class Unwinder:
    """The rules of one image, by link address. Each is made once."""

    def __init__(self, arch: ArchFacts, effects: StackEffects, program: Callable[[], Program]) -> None:
        """Nothing is read until a rule is needed.

        Args:
            arch: the machine.
            effects: the machine's stack.
            program: the original image, without breakpoints, and its functions.
        """
        self._arch = arch
        self._effects = effects
        self._open = program
        self._followed: dict[int, dict[int, FrameState]] = {}  # start of the function -> address -> frame

    def rule_at(self, address: int) -> Rule | None:
        """The rule before the instruction at a link address; None if no caller is known."""
        row, frame = self._call_frames.row_at(address), self._frames_of(address).get(address)
        if row is not None and self._gives_frame(row):
            described = self._rule_of_row(row)
            is_pushed = described is not None and frame is not None and self._has_pushed(described, frame)
            return self._rule(frame) if frame is not None and is_pushed else described
        return self._linked() if frame is None else self._rule(frame)

    def rule_in_call(self, address: int) -> Rule | None:
        """The rule during a call that returns to a link address, which may be just past the function; None if not
        known."""
        # What follows a call that never returns may be another function: the byte before is in the caller (DWARF 5,
        # 6.4.4).
        row = self._call_frames.row_at(address - 1)
        if row is not None and self._gives_frame(row):
            return self._rule_of_row(row)
        frames = self._frames_of(address - 1)
        # The call ends at the address; where it starts is known only for some machines.
        frame = next((frames[at] for at in range(address - 1, address - _LONGEST_CALL, -1) if at in frames), None)
        if frame is None:
            return self._linked()
        return self._rule(replace(frame, returns=LOST) if frame.returns == LINK else frame)

    def row_at(self, address: int) -> FrameRow | None:
        """What call frame information says before the instruction at a link address; None if it says nothing."""
        return self._call_frames.row_at(address)

    def is_code(self, address: int) -> bool:
        """Whether a link address is in code."""
        return any(address - region.address in range(region.size) for region in self._program.image.code_regions)

    def is_start(self, address: int) -> bool:
        """Whether a function begins at a link address."""
        functions = self._program.functions
        row = functions.row_at(address)
        return row is not None and int(functions.address[row]) == address

    def changes_stack(self, address: int) -> bool:
        """Whether the code at a link address, to which a call returns, is on another stack than its function: without a
        branch in between it returns to that."""
        restore, offset = self._effects.stack_restore, self._program.image.offset_of(address)
        code = self._program.image.data[offset : offset + _SWITCHES_BACK] if restore and offset is not None else None
        if code is None or restore not in code.tobytes():
            return False
        found = self._program.dissector.dissect(code, address, np.array([[0, len(code)]], np.int64))
        for at, size, flow in zip(found.address.tolist(), found.size.tolist(), found.flow.tolist(), strict=True):
            if code[at - address : at - address + size].tobytes() == restore:
                return True
            if flow in _ENDS:
                return False
        return False

    def follows_call(self, address: int) -> bool:
        """Whether a link address is one that a call returns to."""
        for region in self._program.image.code_regions:
            offset = address - region.address
            if 0 < offset <= region.size:
                end = region.offset + offset
                before = self._program.image.data[max(region.offset, end - 8) : end]
                return bool(self._effects.call_sizes(before.tobytes()))
        return False

    @cached_property
    def _program(self) -> Program:
        return self._open()

    @cached_property
    def _call_frames(self) -> CallFrames:
        return CallFrames(self._program.image)

    # -- call frame information ---------------------------------------------------------------------------------------

    def _gives_frame(self, row: FrameRow) -> bool:
        """Whether a row describes the frame without an expression. Its return register is undefined in the outermost
        frame: that is a description as well."""
        if row.cfa is None or self._index(row.cfa[0]) is None:
            return False
        returns = row.registers.get(row.return_register)
        return isinstance(returns, Lost) or self._place(returns, row.return_register) is not None

    def _rule_of_row(self, row: FrameRow) -> Rule | None:
        returns = row.registers.get(row.return_register)
        place = self._place(returns, row.return_register)
        base = None if row.cfa is None else self._index(row.cfa[0])
        if place is None or base is None or row.cfa is None:
            return None
        saved = row.registers.get(self._arch.unwind.dwarf_registers.index(self._arch.frame_pointer))
        saved_fp = saved.offset if isinstance(saved, Saved) else None
        return Rule(base, row.cfa[1], *place, saved_fp, is_certain=True)

    def _place(self, returns: RegisterRule | None, register: int) -> tuple[int | None, int] | None:
        """Where the return address is: an offset from the CFA, or None and a register."""
        match returns:
            case Saved(offset=offset):
                return offset, 0
            case Moved(register=other):
                index = self._index(other)
            case None:
                index = self._index(register)
            case _:
                index = None
        return None if index is None else (None, index)

    def _index(self, register: int) -> int | None:
        numbers = self._arch.unwind.dwarf_registers
        index = numbers[register] if 0 <= register < len(numbers) else -1
        return None if index < 0 else index

    # -- the code itself ----------------------------------------------------------------------------------------------

    def _rule(self, frame: FrameState) -> Rule | None:
        sp, fp = self._arch.stack_pointer, self._arch.frame_pointer
        if isinstance(frame.returns, str):
            link = self._arch.link_register
            if frame.returns == LOST or link is None:
                return None
            return Rule(sp, frame.sp or 0, None, link, frame.saved_fp, is_certain=False)
        if frame.sp is not None:
            return Rule(sp, frame.sp, frame.returns, 0, frame.saved_fp, is_certain=False)
        if frame.fp is not None:
            return Rule(fp, frame.fp, frame.returns, 0, frame.saved_fp, is_certain=False)
        return self._linked()

    def _linked(self) -> Rule:
        """The rule of the ABI's frame record, for code of which nothing is known."""
        offset, returns, saved_fp = self._arch.unwind.frame_record
        return Rule(self._arch.frame_pointer, offset, returns, 0, saved_fp, is_certain=False)

    def _has_pushed(self, described: Rule, frame: FrameState) -> bool:
        """Whether the code moved the stack pointer without the compiler's knowledge: "pushf; pop" in inline
        assembly."""
        is_known = frame.sp is not None and not frame.is_guess
        return is_known and described.base == self._arch.stack_pointer and frame.sp != described.offset

    def _frames_of(self, address: int) -> dict[int, FrameState]:
        """The frames in the function that holds an address, or in the code between functions: without symbols, a
        function that is called only by pointers has no name."""
        functions = self._program.functions
        row = functions.row_at(address)
        if row is not None and _is_part(functions.names[row]):
            return {}
        start, end = self._gap(address) if row is None else _bounds(functions, row)
        if not start <= address < end or end - start > _LONGEST:
            return {}
        if start not in self._followed:
            self._followed[start] = self._follow(start, end - start)
        return self._followed[start]

    def _gap(self, address: int) -> tuple[int, int]:
        functions = self._program.functions
        row = int(np.searchsorted(functions.address, np.uint64(address), "right"))
        for region in self._program.image.code_regions:
            if address - region.address in range(region.size):
                start = max(region.address, _bounds(functions, row - 1)[1] if row else 0)
                end = region.address + region.size
                return start, min(end, _bounds(functions, row)[0] if row < len(functions) else end)
        return 0, 0

    def _follow(self, start: int, size: int) -> dict[int, FrameState]:
        """The frame before each instruction of some code."""
        image = self._program.image
        offset = image.offset_of(start)
        if offset is None:
            return {}
        code = image.data[offset : offset + size]
        found = self._program.dissector.dissect(code, start, np.array([[0, size]], np.int64))
        walk = _Walk(at_entry(self._arch), self._effects, code.tobytes(), found)
        walk.run(is_function=self._program.functions.row_at(start) is not None)
        return walk.frames


def _bounds(functions: Functions, row: int) -> tuple[int, int]:
    start = int(functions.address[row])
    return start, start + int(functions.size[row])


class _Walk:
    """One function while it is followed from its entry."""

    def __init__(self, entry: FrameState, effects: StackEffects, code: bytes, found: Instructions) -> None:
        """`entry` is the frame at the first instruction; `found` are the instructions of `code`."""
        self._entry = entry
        self._effects = effects
        self._code = code
        rows = zip(found.address.tolist(), found.size.tolist(), found.flow.tolist(), found.target.tolist(), strict=True)
        self._instructions = {address: (size, flow, target) for address, size, flow, target in rows}
        self._start = next(iter(self._instructions), 0)
        self._targets = {target for _, flow, target in self._instructions.values() if flow in (Flow.JUMP, Flow.BRANCH)}
        # After a call where a branch leads as well: the call may never return, so the branch takes precedence.
        self._later: list[tuple[int, FrameState]] = []
        self._computed: FrameState | None = None  # at the first computed jump: the cases of a switch begin with it
        self.frames: dict[int, FrameState] = {}

    def run(self, *, is_function: bool) -> None:
        """Follow all branches from the entry; then the code that they do not reach. In a function that is reached by
        computed jumps, exceptions or code that is patched at boot; between functions it is another function."""
        self._enter(self._start, self._entry)
        if len(self.frames) == len(self._instructions):
            return
        usual = replace(self._computed or Counter(self.frames.values()).most_common(1)[0][0], is_guess=True)
        for address in self._instructions:
            if address not in self.frames:
                self._enter(address, usual if is_function else self._entry)

    def _enter(self, address: int, frame: FrameState) -> None:
        self._from(address, frame)
        while self._later:
            self._from(*self._later.pop(0))

    def _from(self, address: int, frame: FrameState) -> None:
        # Depth first, and the first frame that reaches an instruction stays: compilers make them all agree.
        waiting = [(address, frame)]
        while waiting:
            address, frame = waiting.pop()
            while address in self._instructions and address not in self.frames:
                self.frames[address] = frame
                size, flow, target = self._instructions[address]
                if flow in (Flow.JUMP, Flow.BRANCH):
                    waiting.append((target, frame))
                if flow == Flow.INDIRECT_JUMP:
                    self._computed = self._computed or frame
                if flow in _ENDS:
                    break
                at = address - self._start
                frame = self._after(self._code[at : at + size], flow, frame)
                address += size
                if flow in _CALLS and address in self._targets:
                    self._later.append((address, frame))
                    break

    def _after(self, instruction: bytes, flow: int, frame: FrameState) -> FrameState:
        if flow in _CALLS:  # the callee's return address is in the link register now
            return replace(frame, returns=LOST) if frame.returns == LINK else frame
        return self._effects.step(instruction, frame)


_ENDS: Final = frozenset({Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP})
_CALLS: Final = frozenset({Flow.CALL, Flow.INDIRECT_CALL})


def _is_part(name: str) -> bool:
    """Whether this is the part of a function that the compiler put elsewhere. Its first instruction already has the
    frame of the function, so it cannot be followed from there."""
    return name.endswith(".cold") or ".cold." in name
