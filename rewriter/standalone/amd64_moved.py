"""An instruction of amd64 -> the code that has its effect anywhere.

No registers nor flags are there to be used, but for those that are dead. What a call leaves on the stack is the address
behind the original, as the guest knows it: calls are pushes and jumps. Below it they use a word or two of the stack,
which belongs to who is called.

Direct branches lose their prefixes: hints mean nothing in 64-bit mode, bnd only with MPX, which no kernel enables now.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kinst.rewriter.arch.amd64_decode import MARGIN, decode
from kinst.rewriter.arch.amd64_opcodes import Prefix, has
from kinst.rewriter.standalone.amd64_pieces import FIELD, Distance, Piece, joined, jump_to, template
from kinst.rewriter.standalone.trampoline import Covered, ImmovableError
from kinst.targets.arch.amd64 import GENERAL, RSP, Kind

_PREFIXES: Final = frozenset((0x26, 0x2E, 0x36, 0x3E, *range(0x40, 0x50), *range(0x64, 0x68), 0xF0, 0xF2, 0xF3))
_ADDRESS_SIZE: Final = 0x67
_REPEATS: Final = (0xF2, 0xF3)
_LOWEST_REX: Final = 0x40
_REX_B: Final = 1
_ESCAPE: Final = 0x0F
_REGISTER_FORM: Final = 0xC0
# ModRM is mod:2 reg:3 rm:3. Of ff, the reg field tells call, jmp and push apart.
_JUMP, _PUSH = 4 << 3, 6 << 3

# Leaves the return address where a call would.
_PUSH_RETURN: Final = template(
    (
        "pushq %rax",
        "leaq @back(%rip), %rax",
        "xchgq %rax, (%rsp)",
    )
)
_PUSH_RETURN_BY: Final = tuple(
    template((f"leaq @back(%rip), %{register}", f"pushq %{register}")) for register in GENERAL
)
# On the stack is where to go: the return address takes its place, and it moves one further, where ret finds it.
_GO_WHERE_THE_STACK_SAYS: Final = template(
    (
        "pushq %rax",
        "leaq @back(%rip), %rax",
        "xchgq %rax, 0x8(%rsp)",
        "xchgq %rax, (%rsp)",
        "retq",
    )
)


def moved(one: Covered) -> Piece:
    """The instruction, for another place.

    Raises:
        ImmovableError: there is no such code, or none that is known to be right.
    """
    move = _MOVES.get(one.kind)
    if move is None:
        raise ImmovableError(f"no trampoline can hold it: {Kind(one.kind).name.lower().replace('_', ' ')}")
    return move(one)


def _as_it_is(one: Covered) -> Piece:
    return Piece(one.code)


def _relative(one: Covered) -> Piece:
    """With an operand beside RIP, in any of the encodings that have ModRM."""
    padded = np.frombuffer(one.code + bytes(MARGIN), np.uint8)
    encoding = decode(padded, np.zeros(1, np.int64))
    if has(encoding.prefixes, Prefix.ADDRESS)[0]:
        raise ImmovableError("its operand is relative to EIP")
    return _with_operand(one, one.code, int(encoding.modrm_at[0]))


def _with_operand(one: Covered, code: bytes, modrm: int) -> Piece:
    """`code`, which has the operand of the instruction: a displacement from RIP, which is behind ModRM."""
    at = modrm + 1
    behind = one.address + len(one.code)
    target = behind + int.from_bytes(code[at : at + 4], "little", signed=True)
    return Piece(code[:at] + FIELD + code[at + 4 :], (Distance(at, len(code), target),))


def _jump(one: Covered) -> Piece:
    return jump_to(one.target)


def _branch(one: Covered) -> Piece:
    """7x rel8 or 0f 8x rel32: the second form of the same condition."""
    opcode = _opcode_at(one.code)
    condition = one.code[opcode + 1 if one.code[opcode] == _ESCAPE else opcode] & 15
    return jump_to(one.target, bytes((_ESCAPE, 0x80 | condition)))


def _short_branch(one: Covered) -> Piece:
    """loop and jrcxz have no other form: they jump over a jump that goes on, to one that leads where they did."""
    over = jump_to(one.target)
    size = len(over.code)
    return joined((Piece(one.code[:-1] + b"\x02\xeb" + bytes((size,))), over))


def _call(one: Covered) -> Piece:
    register = next((number for number in range(16) if one.dead >> number & 1), None)
    push = _PUSH_RETURN if register is None else _PUSH_RETURN_BY[register]
    return joined((push.piece(back=one.address + len(one.code)), jump_to(one.target)))


def _call_indirect(one: Covered) -> Piece:
    """Of a register: a jump to it. Of memory: that is read by a push, whose operand means the same as the call's."""
    code, opcode = one.code, _opcode_at(one.code)
    modrm, back = code[opcode + 1], one.address + len(one.code)
    if modrm >= _REGISTER_FORM:
        if modrm & 7 == RSP and not _extends(code[:opcode]):
            raise ImmovableError("it calls where its own stack pointer leads")
        return joined((_PUSH_RETURN.piece(back=back), Piece(_with_digit(code, opcode + 1, _JUMP))))
    prefixes = bytes(byte for byte in code[:opcode] if byte not in _REPEATS)
    push = _with_digit(prefixes + code[opcode:], len(prefixes) + 1, _PUSH)
    return joined((_indirect(one, push), _GO_WHERE_THE_STACK_SAYS.piece(back=back)))


def _jump_indirect(one: Covered) -> Piece:
    return _indirect(one, one.code)


def _indirect(one: Covered, code: bytes) -> Piece:
    """`code`, which has the operand of an indirect branch."""
    opcode = _opcode_at(code)
    if code[opcode + 1] & 0xC7 != 5:
        return Piece(code)
    if _ADDRESS_SIZE in code[:opcode]:
        raise ImmovableError("its operand is relative to EIP")
    return _with_operand(one, code, opcode + 1)


def _opcode_at(code: bytes) -> int:
    return next(at for at, byte in enumerate(code) if byte not in _PREFIXES)


def _extends(prefixes: bytes) -> bool:
    """Whether REX.B makes register 4 number 12."""
    return bool(prefixes) and prefixes[-1] & 0xF0 == _LOWEST_REX and bool(prefixes[-1] & _REX_B)


def _with_digit(code: bytes, modrm: int, digit: int) -> bytes:
    return code[:modrm] + bytes((code[modrm] & ~0x38 | digit,)) + code[modrm + 1 :]


_PLAIN: Final = (
    *(Kind.OTHER, Kind.NOP, Kind.PUSH, Kind.POP, Kind.MOVE, Kind.ADD, Kind.SUBTRACT, Kind.LEAVE, Kind.RETURN),
    *(Kind.FAR_JUMP, Kind.FAR_RETURN, Kind.HALT),
)
_MOVES: Final[Mapping[int, Callable[[Covered], Piece]]] = {
    **dict.fromkeys(_PLAIN, _as_it_is),
    Kind.RELATIVE: _relative,
    Kind.JUMP: _jump,
    Kind.BRANCH: _branch,
    Kind.LOOP: _short_branch,
    Kind.COUNT_ZERO: _short_branch,
    Kind.CALL: _call,
    Kind.CALL_INDIRECT: _call_indirect,
    Kind.JUMP_INDIRECT: _jump_indirect,
}
