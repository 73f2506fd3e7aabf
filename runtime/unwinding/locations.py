"""DWARF's location expressions (DWARF 5, 2.5 and 2.6) and the frame of a function -> the value of the described object.

Values are 64-bit words without a type, or integers of a base type. If debug information says that a value is not
available, or needs something that a frame does not have, the clause gets a fault with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.location_arithmetic import (
    BINARY,
    UNARY,
    Value,
    binary,
    plain,
    reinterpreted,
    unary,
    wrapped,
)
from kinst.runtime.unwinding.location_operations import (
    ADDR,
    ADDRX,
    BIT_PIECE,
    BRA,
    BREG0,
    BREGX,
    CALL_FRAME_CFA,
    CONST_FIRST,
    CONST_LAST,
    CONST_TYPE,
    CONSTX,
    CONVERT,
    DEREF,
    DEREF_SIZE,
    DEREF_TYPE,
    DROP,
    DUP,
    ENTRY_VALUE,
    FBREG,
    GNU_UNINIT,
    IMPLICIT_VALUE,
    LIT0,
    NOP,
    OPTIMISED_OUT,
    OVER,
    PICK,
    PIECE,
    PLUS_UCONST,
    REG0,
    REGVAL_TYPE,
    REGX,
    REINTERPRET,
    ROT,
    SKIP,
    STACK_VALUE,
    SWAP,
    Entered,
    Operand,
    Operation,
    Terms,
    decoded,
    integer,
)
from kinst.targets.debuginfo.dwarf.unit_terms import BaseType
from kinst.targets.values import dataclass

_WORD: Final = 8
_MASK: Final = (1 << 64) - 1
_MOST_STEPS: Final = 4096  # operations of one evaluation: an expression may jump backwards
_WIDEST: Final = 128  # the bits of a piece that matter
LOST_ENTRY: Final = "only a register at the caller's entry had it"


class LocationFrame(Protocol):
    """What an expression needs from a function that is being executed. All methods raise Fault for what is not
    known."""

    @property
    def bias(self) -> int:
        """What is added to link addresses."""
        ...

    def register(self, number: int) -> int:
        """The value of a register, by DWARF's number."""
        ...

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of memory, of `size` bytes."""
        ...

    def frame_address(self) -> int:
        """The canonical frame address."""
        ...

    def entered(self, wanted: Entered) -> int:
        """The value of a register when the function was entered."""
        ...


@dataclass(frozen=True, slots=True)
class Machine:
    """What a firing's frame is read from.

    `registers` maps DWARF's numbers to indexes of the trap frame, or -1; `cfa` is the canonical frame address of the
    code that fires, None if it is not known; `read` gives bytes of memory or raises Fault; `bias` is added to link
    addresses; `entered` gives the value of a register when the surrounding function was entered.
    """

    registers: Sequence[int]
    cfa: Callable[[Firing], int | None]
    read: Callable[[int, int], bytes]
    bias: int = 0
    entered: Callable[[Firing, Entered], int] | None = None


class FiringFrame:
    """The `LocationFrame` of the function in which a probe fired."""

    __slots__ = ("_firing", "_machine", "bias")

    def __init__(self, machine: Machine, firing: Firing) -> None:
        self._machine = machine
        self._firing = firing
        self.bias = machine.bias

    def register(self, number: int) -> int:
        """A register of the trap frame."""
        registers = self._machine.registers
        index = registers[number] if 0 <= number < len(registers) else -1
        if index < 0:
            raise Fault(FaultKind.ILLOP, 0, f"DWARF's register {number} is none that a probe shows")
        return self._firing.regs[index]

    def load(self, address: int, size: int) -> int:
        """A word of memory, as clauses see it."""
        return int.from_bytes(self._machine.read(address, size), "little")

    def frame_address(self) -> int:
        """The canonical frame address, by call frame information."""
        address = self._machine.cfa(self._firing)
        if address is None:
            raise Fault(FaultKind.ILLOP, 0, "the address of the frame is not known here")
        return address

    def entered(self, wanted: Entered) -> int:
        """An entry value, by the caller's debug information."""
        if self._machine.entered is None:
            raise optimised_out(LOST_ENTRY)
        return self._machine.entered(self._firing, wanted)


def optimised_out(detail: str = "") -> Fault:
    """The fault for a value that is not available."""
    return Fault(FaultKind.ILLOP, 0, f"{OPTIMISED_OUT}{': ' if detail else ''}{detail}")


class Expression:
    """One expression, decoded."""

    def __init__(self, data: bytes, terms: Terms | None = None, frame_base: bytes = b"") -> None:
        """Raises ValueError for what is not an expression or has an unknown operation; the text says which.

        Args:
            data: the expression.
            terms: what the expression may need from its unit.
            frame_base: the frame base of the surrounding function, an expression; empty if it has none.
        """
        self._operations = decoded(data, terms)
        self._base = Expression(frame_base, terms) if frame_base else None

    def value(self, frame: LocationFrame, size: int = _WORD) -> int:
        """The value of the described object, of `size` bytes, unsigned. Raises Fault."""
        return _Run(self._operations, self._base, frame).value(size)

    def address(self, frame: LocationFrame) -> int:
        """A frame base, or the address that an expression computes: the last step, the load, is left out. Raises
        Fault."""
        return _Run(self._operations, self._base, frame).address()

    @property
    def register(self) -> int | None:
        """The register that the location is, by DWARF's number; None if it is not a register."""
        first = self._operations.get(0)
        if first is None or len(self._operations) > 1:
            return None
        if first.code == REGX:
            return integer(first.operands[0])
        return first.code - REG0 if REG0 <= first.code < BREG0 else None


class _Run:
    """One evaluation of an expression."""

    def __init__(self, operations: Mapping[int, Operation], base: Expression | None, frame: LocationFrame) -> None:
        self._operations = operations
        self._base = base
        self._frame = frame
        self._stack: list[Value] = []
        self._held: Value | None = None  # the value itself; None: the top of the stack is its address
        self._pieces: list[tuple[int | None, int]] = []  # (value, bits); None: optimised out

    def value(self, size: int) -> int:
        """The value of what the expression describes, of `size` bytes."""
        self._evaluate()
        found = self._joined(size) if self._pieces else self._one(0, 8 * size)
        if found is None:
            raise optimised_out()
        return found

    def address(self) -> int:
        """The address that the expression computes: the last step, the load, is left out."""
        self._evaluate()
        return plain(self._pop() if self._held is None else self._held) & _MASK

    def _one(self, offset: int, bits: int) -> int | None:
        """Some bits of what was described last; None if nothing was."""
        mask = (1 << bits) - 1
        if self._held is not None:
            return plain(self._held) >> offset & mask
        if not self._stack:
            return None
        address = plain(self._pop()) + offset // 8
        return self._load(address, -(-(offset % 8 + bits) // 8)) >> offset % 8 & mask

    def _joined(self, size: int) -> int | None:
        """The first `size` bytes of an object that is in several places; None if one of them is optimised out."""
        result, shift = 0, 0
        for value, bits in self._pieces:
            if shift >= 8 * size:
                break
            if value is None:
                return None
            result |= value << shift
            shift += bits
        return result & (1 << 8 * size) - 1

    def _evaluate(self) -> None:
        at = 0
        for _ in range(_MOST_STEPS):
            operation = self._operations.get(at)
            if operation is None:
                return
            at = operation.following + self._run(operation)
        raise Fault(FaultKind.ILLOP, 0, "a location expression that does not end")

    def _run(self, operation: Operation) -> int:
        """Run one operation. Returns how far to jump after it, in bytes."""
        code, operands = operation.code, operation.operands
        if code in (BRA, SKIP):
            return integer(operands[0]) if code == SKIP or plain(self._pop()) else 0
        if code in BINARY:
            second, first = self._pop(), self._pop()
            self._stack.append(binary(code, first, second))
        elif code in UNARY:
            self._stack.append(unary(code, self._pop()))
        elif DUP <= code <= ROT:
            self._shuffle(code, operands)
        elif not self._describe(code, operands):
            self._stack.append(self._pushed(code, operands))
        return 0

    def _describe(self, code: int, operands: tuple[Operand, ...]) -> bool:
        """Run an operation that describes the location or the value. False if it is another operation."""
        if REG0 <= code < BREG0 or code == REGX:
            self._held = self._frame.register(code - REG0 if code != REGX else integer(operands[0]))
        elif code == STACK_VALUE:
            self._held = self._pop()
        elif code == IMPLICIT_VALUE:
            self._held = _number(operands[0])
        elif code in (PIECE, BIT_PIECE):
            bits, offset = (integer(operands[0]) * 8, 0) if code == PIECE else (integer(one) for one in operands)
            self._pieces.append((self._one(offset, min(bits, _WIDEST)), bits))
            self._held = None
        else:
            return code in (NOP, GNU_UNINIT)
        return True

    def _pushed(self, code: int, operands: tuple[Operand, ...]) -> Value:
        """The value that an operation pushes."""
        if code in (ADDR, ADDRX):
            return integer(operands[0]) + self._frame.bias & _MASK
        if CONST_FIRST <= code <= CONST_LAST or code == CONSTX:
            return integer(operands[0]) & _MASK
        if LIT0 <= code < REG0:
            return code - LIT0
        if BREG0 <= code < REGX:
            return self._frame.register(code - BREG0) + integer(operands[0]) & _MASK
        if code == BREGX:
            return self._frame.register(integer(operands[0])) + integer(operands[1]) & _MASK
        return self._typed(code, operands) if CONST_TYPE <= code <= REINTERPRET else self._of_frame(code, operands)

    def _of_frame(self, code: int, operands: tuple[Operand, ...]) -> int:
        if code == DEREF:
            return self._load(plain(self._pop()), _WORD)
        if code == DEREF_SIZE:
            return self._load(plain(self._pop()), integer(operands[0]))
        if code == PLUS_UCONST:
            return plain(self._pop()) + integer(operands[0]) & _MASK
        if code == CALL_FRAME_CFA:
            return self._frame.frame_address()
        if code == ENTRY_VALUE:
            wanted = operands[0]
            if not isinstance(wanted, Entered):
                raise optimised_out(LOST_ENTRY)
            return self._frame.entered(wanted)
        assert code == FBREG, "the table of operands has no others"
        if self._base is None:
            raise Fault(FaultKind.ILLOP, 0, "a location relative to a frame that has no base")
        return self._base.address(self._frame) + integer(operands[0]) & _MASK

    def _typed(self, code: int, operands: tuple[Operand, ...]) -> Value:
        """The value that an operation with a type pushes (DWARF 5, 2.5.1.6, and others)."""
        if code == CONST_TYPE:
            return wrapped(_number(operands[1]), _kind(operands[0]))
        if code == REGVAL_TYPE:
            return wrapped(self._frame.register(integer(operands[0])), _kind(operands[1]))
        if code == DEREF_TYPE:
            return wrapped(self._load(plain(self._pop()), integer(operands[0])), _kind(operands[1]))
        if code == CONVERT:
            return wrapped(plain(self._pop()), _kind(operands[0]))
        return reinterpreted(self._pop(), _kind(operands[0]))

    def _shuffle(self, code: int, operands: tuple[Operand, ...]) -> None:
        stack = self._stack
        depth = {DUP: 1, DROP: 1, OVER: 2, SWAP: 2, ROT: 3}.get(code) or integer(operands[0]) + 1
        if len(stack) < depth:
            raise Fault(FaultKind.ILLOP, 0, "a location expression that takes more than there is")
        if code == DROP:
            stack.pop()
        elif code == SWAP:
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif code == ROT:
            stack[-3:] = [stack[-1], stack[-3], stack[-2]]
        else:
            assert code in (DUP, OVER, PICK)
            stack.append(stack[-depth])

    def _pop(self) -> Value:
        if not self._stack:
            raise Fault(FaultKind.ILLOP, 0, "a location expression that takes more than there is")
        return self._stack.pop()

    def _load(self, address: int, size: int) -> int:
        """Memory at an address. Of more than 16 bytes only the first are read: computations use nothing larger."""
        return self._frame.load(address & _MASK, min(size, 2 * _WORD))


def _number(operand: Operand) -> int:
    """The number that the bytes of a constant are."""
    assert isinstance(operand, bytes), "the table of operands says so"
    return int.from_bytes(operand, "little")


def _kind(operand: Operand) -> BaseType | None:
    assert operand is None or isinstance(operand, BaseType), "the table of operands says so"
    return operand
