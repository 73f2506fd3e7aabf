"""An instruction of amd64 -> code with the same effect at any address.

There are no registers or flags to work with, except dead ones. A call must leave the address after the original
instruction on the stack, which is what the guest's unwinder and debuggers look up: it becomes a push and a jump. This
uses a word or two below the stack pointer, which belong to the callee anyway.

Direct branches lose their prefixes: branch hints mean nothing in 64-bit mode, and bnd only with MPX, which no current
kernel enables.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kinst.rewriter.arch.amd64_decode import MARGIN, decode, displacements
from kinst.rewriter.arch.amd64_opcodes import Prefix, has
from kinst.rewriter.standalone.amd64.pieces import FIELD, address, jump_to, template
from kinst.rewriter.standalone.code.parts import OPERAND, TARGET, Addresses, Numbers, Parts, joined
from kinst.rewriter.standalone.code.trampoline import ImmovableError, Rows, Shape, Shapes
from kinst.targets.arch.amd64 import GENERAL, RSP, Kind
from kinst.targets.columns import is_one_of

_PREFIXES: Final = frozenset((0x26, 0x2E, 0x36, 0x3E, *range(0x40, 0x50), *range(0x64, 0x68), 0xF0, 0xF2, 0xF3))
_REPEATS: Final = (0xF2, 0xF3)
_LOWEST_REX: Final = 0x40
_REX_B: Final = 1
_ESCAPE: Final = 0x0F
_LONG_BRANCH: Final = 6  # bytes of 0f 8x rel32
_LONG_JUMP: Final = 5  # bytes of e9 rel32
_JMP: Final = 0xE9
_REGISTERS: Final = (1 << len(GENERAL)) - 1
_REGISTER_FORM: Final = 0xC0
# ModRM is mod:2 reg:3 rm:3. Of ff, reg selects inc, dec, call, call far, jmp, jmp far and push.
_JUMP, _PUSH = 4 << 3, 6 << 3

# Leaves the return address where a call would, without a scratch register.
_PUSH_RETURN: Final = template(
    (
        "pushq %rax",
        "leaq @next(%rip), %rax",
        "xchgq %rax, (%rsp)",
    )
)
_PUSH_RETURN_BY: Final = tuple(
    template((f"leaq @next(%rip), %{register}", f"pushq %{register}")) for register in GENERAL
)
# The destination is on top of the stack: the return address takes its place, and the destination moves below it, where
# ret finds it.
_GO_WHERE_THE_STACK_SAYS: Final = template(
    (
        "pushq %rax",
        "leaq @next(%rip), %rax",
        "xchgq %rax, 0x8(%rsp)",
        "xchgq %rax, (%rsp)",
        "retq",
    )
)


def shapes(rows: Rows) -> Shapes:
    """What the displaced code depends on: everything but displacements. A call also depends on its first dead register.

    `detail` is the offset of a RIP-relative displacement, 0 if there is none.
    """
    code, size, kind = rows.code.copy(), rows.size, rows.kind
    detail, operand = np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.uint64)
    relative, at, shown = _relative(rows)
    detail[relative], operand[relative] = at, shown
    code[relative[:, None], at[:, None] + np.arange(FIELD)] = 0
    short = np.flatnonzero(is_one_of(kind, (Kind.BRANCH, Kind.LOOP, Kind.COUNT_ZERO)))
    long = short[(size[short] >= _LONG_BRANCH) & (code[short, size[short] - _LONG_BRANCH] == _ESCAPE)]
    # rel8 is the last byte, rel32 the last four.
    code[short, size[short] - 1] = 0
    code[long[:, None], size[long][:, None] - 1 - np.arange(FIELD)] = 0
    # jmp and call are made anew from their target alone, and a long jmp with its prefixes.
    is_padded = (kind == Kind.JUMP) & (size > _LONG_JUMP) & (code[np.arange(len(rows)), size - _LONG_JUMP] == _JMP)
    code[is_one_of(kind, (Kind.JUMP, Kind.CALL)) & ~is_padded] = 0
    padded = np.flatnonzero(is_padded)
    code[padded[:, None], size[padded][:, None] - 1 - np.arange(FIELD)] = 0
    is_call, dead = kind == Kind.CALL, rows.dead & np.uint32(_REGISTERS)
    first = np.where(is_call, dead & (~dead + np.uint32(1)), np.uint32(0))
    return Shapes(is_one_of(kind, _PLAIN), code, first, np.zeros(len(rows), np.bool_), detail, operand)


def _relative(rows: Rows) -> tuple[Numbers, Numbers, Addresses]:
    """Rows with a RIP-relative operand, the offset of its displacement, and the operand's address."""
    chosen = np.flatnonzero(is_one_of(rows.kind, (Kind.RELATIVE, Kind.CALL_INDIRECT, Kind.JUMP_INDIRECT)))
    content = np.pad(rows.code[chosen], ((0, 1), (0, MARGIN))).reshape(-1)
    start = np.arange(len(chosen)) * (rows.code.shape[1] + MARGIN)
    encoding = decode(content, start)
    # With an address-size prefix it is relative to EIP (SDM volume 2, "RIP-Relative Addressing"): left to
    # `_with_operand` to refuse.
    has_one = encoding.rip_relative & ~has(encoding.prefixes, Prefix.ADDRESS)
    chosen, at = chosen[has_one], encoding.modrm_at[has_one] + 1
    ends = rows.address[chosen] + rows.size[chosen].view(np.uint64)
    return chosen, at - start[has_one], ends + displacements(content, at, FIELD).view(np.uint64)


def moved(shape: Shape) -> Parts:
    """The instruction, for another address.

    Raises:
        ImmovableError: there is no such code, or none that is known to be right.
    """
    move = _MOVES.get(shape.kind)
    if move is None:
        raise ImmovableError(f"no trampoline can hold it: {Kind(shape.kind).name.lower().replace('_', ' ')}")
    return move(shape)


def _with_operand(code: bytes, at: int) -> Parts:
    """`code`, with a fixup for the RIP-relative displacement at an offset."""
    if not at:
        raise ImmovableError("its operand is relative to EIP")
    after = code[at + FIELD :]
    return joined((code[:at], address(OPERAND, len(after)), after))


def _relative_as_it_is(one: Shape) -> Parts:
    return _with_operand(one.code, one.detail)


def _jump(one: Shape) -> Parts:
    """Prefixes stay: the kernel writes over some jumps, and needs all of their bytes."""
    opcode = one.code[:-FIELD]
    return jump_to(TARGET, opcode) if opcode.endswith(bytes((_JMP,))) else jump_to(TARGET)


def _branch(one: Shape) -> Parts:
    """7x rel8 and 0f 8x rel32 become the long encoding of the same condition."""
    opcode = _opcode_at(one.code)
    condition = one.code[opcode + 1 if one.code[opcode] == _ESCAPE else opcode] & 15
    return jump_to(TARGET, bytes((_ESCAPE, 0x80 | condition)))


def _short_branch(one: Shape) -> Parts:
    """loop and jrcxz have rel8 only: taken, they skip a jmp (eb 05) that skips the jmp rel32 to their target."""
    return joined((one.code[:-1] + b"\x02\xeb\x05",), jump_to(TARGET))


def _call(one: Shape) -> Parts:
    push = _PUSH_RETURN_BY[one.dead.bit_length() - 1] if one.dead else _PUSH_RETURN
    return joined(push, jump_to(TARGET))


def _call_indirect(one: Shape) -> Parts:
    """By a register: a jump to it. By memory: a push with the same operand, since the operand may depend on rsp and
    must be read before anything is pushed."""
    code, opcode = one.code, _opcode_at(one.code)
    modrm = code[opcode + 1]
    if modrm >= _REGISTER_FORM:
        if modrm & 7 == RSP and not _extends(code[:opcode]):
            raise ImmovableError("it calls where its own stack pointer leads")
        return joined(_PUSH_RETURN, (_with_digit(code, opcode + 1, _JUMP),))
    # f2 (bnd) and f3 mean nothing to push.
    prefixes = bytes(byte for byte in code[:opcode] if byte not in _REPEATS)
    push = _with_digit(prefixes + code[opcode:], len(prefixes) + 1, _PUSH)
    at = one.detail and one.detail - (len(code) - len(push))
    return joined(_indirect(push, at), _GO_WHERE_THE_STACK_SAYS)


def _jump_indirect(one: Shape) -> Parts:
    return _indirect(one.code, one.detail)


def _indirect(code: bytes, at: int) -> Parts:
    """`code` of an indirect branch or push, with a fixup if its operand is RIP-relative: mod 00, r/m 101."""
    return _with_operand(code, at) if code[_opcode_at(code) + 1] & 0xC7 == 5 else (code,)


def _opcode_at(code: bytes) -> int:
    return next(at for at, byte in enumerate(code) if byte not in _PREFIXES)


def _extends(prefixes: bytes) -> bool:
    """Whether REX.B turns register 4 into r12."""
    return bool(prefixes) and prefixes[-1] & 0xF0 == _LOWEST_REX and bool(prefixes[-1] & _REX_B)


def _with_digit(code: bytes, modrm: int, digit: int) -> bytes:
    return code[:modrm] + bytes((code[modrm] & ~0x38 | digit,)) + code[modrm + 1 :]


_PLAIN: Final = (
    *(Kind.OTHER, Kind.NOP, Kind.PUSH, Kind.POP, Kind.MOVE, Kind.ADD, Kind.SUBTRACT, Kind.LEAVE, Kind.RETURN),
    *(Kind.FAR_JUMP, Kind.FAR_RETURN, Kind.HALT),
)
_MOVES: Final[Mapping[int, Callable[[Shape], Parts]]] = {
    Kind.RELATIVE: _relative_as_it_is,
    Kind.JUMP: _jump,
    Kind.BRANCH: _branch,
    Kind.LOOP: _short_branch,
    Kind.COUNT_ZERO: _short_branch,
    Kind.CALL: _call,
    Kind.CALL_INDIRECT: _call_indirect,
    Kind.JUMP_INDIRECT: _jump_indirect,
}
