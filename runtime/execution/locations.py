"""DWARF's location expressions (DWARF 5, 2.5 and 2.6) and a firing -> the value of what is described.

Values are 64-bit words without a type. Where debug information says that a value cannot be had, or needs what a firing
does not show (a register's value at the caller's entry that was overwritten since), the clause that asks gets a fault
that says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kinst.runtime.execution.faults import Fault, FaultKind
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap import Firing

OPTIMISED_OUT: Final = "optimised out"
_WORD: Final = 8
_MASK: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63
_MOST_STEPS: Final = 4096  # an expression may jump backwards

# DW_OP codes that are told apart here; the rest of arithmetic is in `_BINARY` and `_UNARY`.
_ADDR, _DEREF = 0x03, 0x06
_CONST_FIRST, _CONST_LAST = 0x08, 0x11
_DUP, _DROP, _OVER, _PICK, _SWAP, _ROT = 0x12, 0x13, 0x14, 0x15, 0x16, 0x17
_PLUS_UCONST, _BRA, _SKIP = 0x23, 0x28, 0x2F
_LIT0, _REG0, _BREG0, _REGX = 0x30, 0x50, 0x70, 0x90
_FBREG, _BREGX, _PIECE, _DEREF_SIZE, _NOP = 0x91, 0x92, 0x93, 0x94, 0x96
_CALL_FRAME_CFA, _IMPLICIT_VALUE, _STACK_VALUE = 0x9C, 0x9E, 0x9F
_IMPLICIT_POINTER, _ENTRY_VALUE, _GNU_UNINIT = 0xA0, 0xA3, 0xF0
_GNU_IMPLICIT_POINTER, _GNU_ENTRY_VALUE, _GNU_PARAMETER_REF = 0xF2, 0xF3, 0xFA
_UNKNOWABLE: Final = frozenset({_IMPLICIT_POINTER, _GNU_IMPLICIT_POINTER, _GNU_PARAMETER_REF})

# Operands of the codes that have any: letters as in struct for fixed sizes, U and S for LEB128, B for a block.
_OPERANDS: Final[dict[int, str]] = {
    _ADDR: "8", 0x08: "1", 0x09: "1s", 0x0A: "2", 0x0B: "2s", 0x0C: "4", 0x0D: "4s", 0x0E: "8", 0x0F: "8s",
    0x10: "U", 0x11: "S", _PICK: "1", _PLUS_UCONST: "U", _BRA: "2s", _SKIP: "2s",
    **dict.fromkeys(range(_BREG0, _BREG0 + 32), "S"),
    _REGX: "U", _FBREG: "S", _BREGX: "US", _PIECE: "U", _DEREF_SIZE: "1",
    _IMPLICIT_VALUE: "B", _ENTRY_VALUE: "B", _GNU_ENTRY_VALUE: "B",
}  # fmt: skip
_PLAIN: Final = frozenset(
    {_DEREF, *range(_DUP, _ROT + 1), *range(0x19, 0x28), *range(0x29, 0x2F), *range(_LIT0, _BREG0), _NOP}
    | {_CALL_FRAME_CFA, _STACK_VALUE, _GNU_UNINIT}
)


class Operation(NamedTuple):
    """One operation: its code, operands (a block is bytes), and where the next begins."""

    code: int
    operands: tuple[int | bytes, ...]
    following: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What expressions ask of the machine.

    `registers` maps DWARF's numbers to indexes of the trap frame, or -1; `cfa` is the canonical frame address of the
    code that fires, None where nobody knows; `bias` is added to link addresses.
    """

    registers: Sequence[int]
    cfa: Callable[[Firing], int | None]
    bias: int = 0


def optimised_out(detail: str = "") -> Fault:
    """What a clause gets that asks for a value which is not there."""
    return Fault(FaultKind.ILLOP, 0, f"{OPTIMISED_OUT}{': ' if detail else ''}{detail}")


class Expression:
    """One expression, taken apart."""

    def __init__(self, data: bytes, machine: Machine, frame_base: bytes = b"") -> None:
        """Raises ValueError: not an expression, or one of a form that is not known; the text says which."""
        self._machine = machine
        self._operations = _decoded(data)
        self._base = Expression(frame_base, machine) if frame_base else None

    def value(self, firing: Firing, size: int = _WORD) -> int:
        """The value of the described object, of `size` bytes, unsigned. Raises Fault."""
        return _Run(self._operations, self._machine, self._base, firing).value(size)

    def address(self, firing: Firing) -> int:
        """A frame base: the address itself, or the register that holds it."""
        return _Run(self._operations, self._machine, None, firing).address()


class _Run:
    """One evaluation."""

    def __init__(
        self, operations: Mapping[int, Operation], machine: Machine, base: Expression | None, firing: Firing
    ) -> None:
        self._operations = operations
        self._machine = machine
        self._base = base
        self._firing = firing
        self._stack: list[int] = []
        self._held: int | None = None  # the value itself, where the expression does not lead to memory
        self._pieces: list[tuple[int, int]] = []  # (value, bytes)

    def value(self, size: int) -> int:
        """What the expression describes."""
        self._evaluate()
        if self._pieces:
            return self._joined()
        return self._one(size)

    def address(self) -> int:
        """Without the last step, the load."""
        self._evaluate()
        return self._pop() if self._held is None else self._held

    def _one(self, size: int) -> int:
        if self._held is not None:
            return self._held & (1 << 8 * size) - 1
        if not self._stack:
            raise optimised_out()
        return self._load(self._pop(), size)

    def _joined(self) -> int:
        result, shift = 0, 0
        for value, size in self._pieces:
            result |= (value & (1 << 8 * size) - 1) << shift
            shift += 8 * size
        return result & _MASK

    def _evaluate(self) -> None:
        at = 0
        for _ in range(_MOST_STEPS):
            operation = self._operations.get(at)
            if operation is None:
                return
            at = operation.following + self._do(operation)
        raise Fault(FaultKind.ILLOP, 0, "a location expression that does not end")

    def _do(self, operation: Operation) -> int:
        """Carry out one operation; how far to jump afterwards."""
        code, operands = operation.code, operation.operands
        if code in (_BRA, _SKIP):
            return _int(operands[0]) if code == _SKIP or self._pop() else 0
        if code in _BINARY:
            second, first = self._pop(), self._pop()
            self._stack.append(_BINARY[code](first, second) & _MASK)
        elif code in _UNARY:
            self._stack.append(_UNARY[code](self._pop()) & _MASK)
        elif _DUP <= code <= _ROT:
            self._shuffle(code, operands)
        elif not self._describe(code, operands):
            self._stack.append(self._pushed(code, operands) & _MASK)
        return 0

    def _describe(self, code: int, operands: tuple[int | bytes, ...]) -> bool:
        """Operations that say what the result is."""
        if _REG0 <= code < _BREG0 or code == _REGX:
            self._held = self._register(code - _REG0 if code != _REGX else _int(operands[0]))
        elif code == _STACK_VALUE:
            self._held = self._pop()
        elif code == _IMPLICIT_VALUE:
            self._held = int.from_bytes(_bytes(operands[0])[:_WORD], "little")
        elif code == _PIECE:
            size = _int(operands[0])
            self._pieces.append((self._one(size), size))
            self._held = None
        else:
            return code in (_NOP, _GNU_UNINIT)
        return True

    def _pushed(self, code: int, operands: tuple[int | bytes, ...]) -> int:
        """The word that an operation puts on the stack."""
        if code == _ADDR:
            return _int(operands[0]) + self._machine.bias
        if _CONST_FIRST <= code <= _CONST_LAST:
            return _int(operands[0])
        if _LIT0 <= code < _REG0:
            return code - _LIT0
        if _BREG0 <= code < _REGX:
            return self._register(code - _BREG0) + _int(operands[0])
        if code == _BREGX:
            return self._register(_int(operands[0])) + _int(operands[1])
        return self._of_frame(code, operands)

    def _of_frame(self, code: int, operands: tuple[int | bytes, ...]) -> int:
        match code:
            case 0x06:
                return self._load(self._pop(), _WORD)
            case 0x94:
                return self._load(self._pop(), _int(operands[0]))
            case 0x23:
                return self._pop() + _int(operands[0])
            case 0x9C:
                return self._frame_address()
            case 0x91:
                if self._base is None:
                    raise Fault(FaultKind.ILLOP, 0, "a location relative to a frame that has no base")
                return self._base.address(self._firing) + _int(operands[0])
            case _:  # DW_OP_entry_value: the register was overwritten since, or the compiler would have named it
                raise optimised_out("only a register at the caller's entry had it")

    def _shuffle(self, code: int, operands: tuple[int | bytes, ...]) -> None:
        stack = self._stack
        depth = {_DUP: 1, _DROP: 1, _OVER: 2, _SWAP: 2, _ROT: 3}.get(code) or _int(operands[0]) + 1
        if len(stack) < depth:
            raise Fault(FaultKind.ILLOP, 0, "a location expression that takes more than there is")
        match code:
            case 0x13:
                stack.pop()
            case 0x16:
                stack[-1], stack[-2] = stack[-2], stack[-1]
            case 0x17:
                stack[-3:] = [stack[-1], stack[-3], stack[-2]]
            case _:
                stack.append(stack[-depth])

    def _pop(self) -> int:
        if not self._stack:
            raise Fault(FaultKind.ILLOP, 0, "a location expression that takes more than there is")
        return self._stack.pop()

    def _register(self, number: int) -> int:
        registers = self._machine.registers
        index = registers[number] if 0 <= number < len(registers) else -1
        if index < 0:
            raise Fault(FaultKind.ILLOP, 0, f"DWARF's register {number} is none that a probe shows")
        return self._firing.regs[index]

    def _load(self, address: int, size: int) -> int:
        try:
            return self._firing.frame.load(address & _MASK, min(size, _WORD))
        except PageFault:
            raise Fault(FaultKind.BADADDR, address & _MASK) from None

    def _frame_address(self) -> int:
        address = self._machine.cfa(self._firing)
        if address is None:
            raise Fault(FaultKind.ILLOP, 0, "the address of the frame is not known here")
        return address


def _int(operand: int | bytes) -> int:
    assert isinstance(operand, int), "the table of operands says so"
    return operand


def _bytes(operand: int | bytes) -> bytes:
    assert isinstance(operand, bytes), "the table of operands says so"
    return operand


def _signed(value: int) -> int:
    return value - (value >> 63 << 64)


def _divided(first: int, second: int) -> int:
    if not second:
        raise Fault(FaultKind.DIVZERO)
    first, second = _signed(first), _signed(second)
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


def _remainder(first: int, second: int) -> int:
    if not second:
        raise Fault(FaultKind.DIVZERO)
    return first % second  # DW_OP_mod takes words without sign, as gdb and gcc do


_BINARY: Final[dict[int, Callable[[int, int], int]]] = {
    0x1A: lambda first, second: first & second,
    0x1B: _divided,
    0x1C: lambda first, second: first - second,
    0x1D: _remainder,
    0x1E: lambda first, second: first * second,
    0x21: lambda first, second: first | second,
    0x22: lambda first, second: first + second,
    0x24: lambda first, second: first << second if second < 64 else 0,
    0x25: lambda first, second: first >> second if second < 64 else 0,
    0x26: lambda first, second: _signed(first) >> min(second, 63),
    0x27: lambda first, second: first ^ second,
    0x29: lambda first, second: int(first == second),
    0x2A: lambda first, second: int(_signed(first) >= _signed(second)),
    0x2B: lambda first, second: int(_signed(first) > _signed(second)),
    0x2C: lambda first, second: int(_signed(first) <= _signed(second)),
    0x2D: lambda first, second: int(_signed(first) < _signed(second)),
    0x2E: lambda first, second: int(first != second),
}
_UNARY: Final[dict[int, Callable[[int], int]]] = {
    0x19: lambda value: abs(_signed(value)),
    0x1F: lambda value: -value,
    0x20: lambda value: ~value,
}


# -- taking expressions apart -----------------------------------------------------------------------------------------


def _decoded(data: bytes) -> dict[int, Operation]:
    """Operations by where they begin."""
    found: dict[int, Operation] = {}
    at = 0
    while at < len(data):
        operation = _operation(data, at)
        found[at] = operation
        at = operation.following
    return found


def _operation(data: bytes, at: int) -> Operation:
    code, start = data[at], at
    at += 1
    if code in _UNKNOWABLE:
        raise ValueError(OPTIMISED_OUT)
    if code not in _OPERANDS and code not in _PLAIN:
        raise ValueError(f"its location has an operation {code:#04x} that is not known here")
    operands: list[int | bytes] = []
    kinds = _OPERANDS.get(code, "")
    if kinds[:1].isdigit():
        size = int(kinds[0])
        operands.append(int.from_bytes(data[at : at + size], "little", signed=kinds.endswith("s")))
        at += size
    else:
        for kind in kinds:
            operand, at = _leb128(data, at, is_signed=kind == "S")
            if kind == "B":
                operands.append(data[at : at + operand])
                at += operand
            else:
                operands.append(operand)
    if at > len(data):
        raise ValueError(f"its location is cut short at byte {start}")
    return Operation(code, tuple(operands), at)


def _leb128(data: bytes, at: int, *, is_signed: bool) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value - (1 << shift) if is_signed and byte & 0x40 else value), at
    raise ValueError("its location is cut short")
