"""An amd64 instruction that its image moved, or a direct call -> a trampoline that does in its slot what it does where
it is now.

The trampolines of a patched image contain link addresses: the one to continue at, and the displacement of a
RIP-relative operand. Code that runs elsewhere (early boot in the identity map, a kernel at a random offset, firmware
that copied itself) needs other trampolines, which refer to what the moved code refers to:

    instruction, its RIP-relative operand re-encoded | e9 distance: jmp to the next instruction
    instruction, its RIP-relative operand re-encoded | ff 25 00000000: jmp *0(%rip) | address of the next instruction

The second form is for targets that are out of reach of the first.

An operand out of reach of the slot is given by its absolute address instead. That takes one more byte (SIB), and
reaches the first and the last 2 GiB of the address space, or with an address-size prefix the first 4 GiB.

    ModRM mod=00 r/m=101, disp32: RIP + disp32       ModRM mod=00 r/m=100, SIB 00 100 101, disp32: disp32 sign-extended

SDM volume 2, 2.1.5 and 2.2.1.6. A call pushes where it would return to, and goes where it would go:

    68 address[31:0]: push | c7 44 24 04 address[63:32]: movl to 4(%rsp) | a jump to the target, as above

The first push has written the eight bytes that movl writes to, so nothing but the first instruction can fault.
"""

from typing import Final

import numpy as np

from kinst.rewriter.arch.amd64_decode import MARGIN, decode
from kinst.rewriter.arch.amd64_opcodes import VEX_0F, Prefix
from kinst.targets.arch.amd64 import LONGEST, Kind

_SHORT_JUMP: Final = b"\xe9"
_SHORT_SIZE: Final = 5
_JUMP: Final = b"\xff\x25\x00\x00\x00\x00"
_PUSH: Final = b"\x68"
_HIGH_HALF: Final = b"\xc7\x44\x24\x04"
_SIB_WITHOUT_REGISTERS: Final = b"\x25"
_ADDRESS_SIZE: Final = b"\x67"
_EVEX: Final = 0x62
_WORD32, _WORD64 = 1 << 32, 1 << 64


def moved_trampoline(kind: int, instruction: bytes, address: int, slot: int) -> bytes | None:
    """The trampoline at `slot` for an instruction that runs at `address`; None if its operand cannot be reached.

    Args:
        kind: the kind in the manifest.
        instruction: the bytes at `address`, which relocations may have changed.
        address: where the instruction is.
        slot: where the trampoline will be.
    """
    following = (address + len(instruction)) % _WORD64
    if kind == Kind.CALL:
        target = (following + int.from_bytes(instruction[-4:], "little", signed=True)) % _WORD64
        pushed = _push(following)
        return pushed + _jump(slot + len(pushed), target)
    displaced = _displaced(instruction, address, slot) if kind == Kind.RELATIVE else instruction
    if displaced is None:
        return None
    return displaced + _jump(slot + len(displaced), following)


def _jump(at: int, target: int) -> bytes:
    distance = _signed(target - at - _SHORT_SIZE, _WORD64)
    if _fits(distance):
        return _SHORT_JUMP + distance.to_bytes(4, "little", signed=True)
    return _JUMP + target.to_bytes(8, "little")


def _push(word: int) -> bytes:
    """Code that pushes 64 bits."""
    content = word.to_bytes(8, "little")
    return _PUSH + content[:4] + _HIGH_HALF + content[4:]


def _displaced(instruction: bytes, address: int, slot: int) -> bytes | None:
    """The instruction with an operand that means the same at `slot`."""
    # The rewriter's decoder knows where ModRM is. It reads ahead, whence the margin.
    padded = np.frombuffer(instruction + bytes(MARGIN), np.uint8)
    encoding = decode(padded, np.zeros(1, np.int64))
    modrm, is_narrow = int(encoding.modrm_at[0]), bool(encoding.prefixes[0] & Prefix.ADDRESS)
    head, immediate = instruction[: modrm + 1], instruction[modrm + 5 :]
    old = int.from_bytes(instruction[modrm + 1 : modrm + 5], "little", signed=True)
    new = _signed(old + address - slot, _WORD32 if is_narrow else _WORD64)
    if _fits(new):
        return head + (new % _WORD32).to_bytes(4, "little") + immediate
    # disp32 alone is sign-extended: the first and last 2 GiB. With 67 the address is cut to 32 bits: the first 4 GiB.
    target = (address + len(instruction) + old) % _WORD64
    prefix = b"" if _fits(_signed(target, _WORD64)) else _ADDRESS_SIZE
    if (prefix and target >= _WORD32) or len(instruction) + 1 + len(prefix) > LONGEST:
        return None
    if _has_index_bit(head, int(encoding.opcode[0]), int(encoding.prefixes[0])):
        return None
    absolute = _SIB_WITHOUT_REGISTERS + (target % _WORD32).to_bytes(4, "little")
    return prefix + head[:-1] + bytes([head[-1] ^ 1]) + absolute + immediate


def _has_index_bit(head: bytes, opcode: int, prefixes: int) -> bool:
    """Whether a bit is set that has no meaning without a SIB byte, but with one makes r12 the index: REX.X, or its
    inverse in the first payload byte of VEX (c4 and two bytes, opcode, ModRM) and EVEX (62 and three bytes)."""
    if opcode < VEX_0F:
        return bool(prefixes & Prefix.REX_X)
    if len(head) >= 6 and head[-6] == _EVEX:
        return not head[-5] & 0x40
    return len(head) >= 5 and head[-5] in (0xC4, 0x8F) and not head[-4] & 0x40


def _signed(value: int, modulus: int) -> int:
    value %= modulus
    return value - modulus if value >= modulus // 2 else value


def _fits(value: int) -> bool:
    return -(1 << 31) <= value < 1 << 31
