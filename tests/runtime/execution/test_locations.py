"""DWARF location expressions against values worked out by hand, on a trap frame of ours: r<i> holds 0x100 * i, memory
holds at each address that address."""

from types import SimpleNamespace
from typing import cast

import pytest

from kinst.runtime.execution.faults import Fault, FaultKind
from kinst.runtime.execution.locations import Expression, FiringFrame, Machine
from kinst.runtime.trap import Firing

UNMAPPED = 0xDEAD_0000
CFA = 0x5000


def read(address: int, size: int) -> bytes:
    if address >= UNMAPPED:
        raise Fault(FaultKind.BADADDR, address)
    return address.to_bytes(16, "little")[:size]


FIRING = cast(Firing, SimpleNamespace(regs=[0x100 * index for index in range(16)]))
MACHINE = Machine(registers=[*range(15), -1], cfa=lambda _firing: CFA, read=read, bias=0x10)


def value(data: str, size: int = 8, base: str = "") -> int:
    return Expression(bytes.fromhex(data), None, bytes.fromhex(base)).value(FiringFrame(MACHINE, FIRING), size)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("55", 0x500),  # reg5
        ("9005", 0x500),  # regx 5
        ("7508", 0x508),  # breg5 8: memory there
        ("7578", 0x4F8),  # breg5 -8
        ("920508", 0x508),  # bregx 5 8
        ("75089f", 0x508),  # its address
        ("0300100000000000009f", 0x1010),  # addr 0x1000, as loaded
        ("319f", 1),  # lit1
        ("09ff9f", 2**64 - 1),  # const1s -1
        ("08ff9f", 255),
        ("0bfeff9f", 2**64 - 2),
        ("10e5079f", 0x3E5),  # constu
        ("117f9f", 2**64 - 1),  # consts
        ("7500069f", 0x500),  # deref
        ("750094019f", 0),  # deref_size 1 of 0x500
        ("750023019f", 0x501),  # plus_uconst
        ("3832229f", 10),  # plus
        ("38321c9f", 6),  # minus
        ("38321e9f", 16),
        ("38321b9f", 4),  # div
        ("09f8321b9f", 2**64 - 4),  # of a number below 0
        ("37331d9f", 1),  # mod
        ("38321a9f", 0),
        ("3832219f", 10),
        ("3832279f", 10),
        ("3832249f", 32),
        ("3832259f", 2),
        ("09f832269f", 2**64 - 2),  # shra
        ("381f9f", 2**64 - 8),
        ("38209f", 2**64 - 9),
        ("09f8199f", 8),  # abs
        ("09f8382d9f", 1),  # lt, with a sign
        ("38382e9f", 0),  # ne
        ("3812229f", 16),  # dup
        ("3832139f", 8),  # drop
        ("3832149f", 8),  # over
        ("38323315029f", 8),  # pick 2
        ("3832161c9f", 2**64 - 6),  # swap
        ("313233179f", 2),  # rot
        ("31280100383a9f", 10),  # bra over lit8
        ("2f0100383a9f", 10),  # skip
        ("9e0401020304", 0x04030201),  # implicit_value
        ("559304569304", 0x600_0000_0500),
        ("9c9f", CFA),
        ("7500969f", 0x500),  # nop
    ],
)
def test_values(data: str, expected: int) -> None:
    assert value(data) == expected


def test_frames() -> None:
    """fbreg: from the frame's address, a register, or an address in a register."""
    assert value("91709f", base="9c") == CFA - 16
    assert value("91709f", base="56") == 0x600 - 16
    assert value("9108", base="7600") == 0x608


def test_sizes() -> None:
    assert value("55", 1) == 0
    assert value("7578", 1) == 0xF8
    assert value("09ff9f", 4) == 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        ("", FaultKind.ILLOP, "optimised out"),
        ("a301559f", FaultKind.ILLOP, "optimised out: only a register at the caller's entry had it"),
        ("229f", FaultKind.ILLOP, "takes more than there is"),
        ("129f", FaultKind.ILLOP, "takes more than there is"),
        ("38301b9f", FaultKind.DIVZERO, ""),
        ("2ffdff", FaultKind.ILLOP, "does not end"),
        ("5f", FaultKind.ILLOP, "register 15 is none"),
        ("0c0000adde06", FaultKind.BADADDR, ""),
        ("91709f", FaultKind.ILLOP, "has no base"),
    ],
)
def test_what_cannot_be_had_is_a_fault(data: str, kind: FaultKind, text: str) -> None:
    with pytest.raises(Fault) as caught:
        value(data)
    assert caught.value.kind is kind
    assert text in caught.value.text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("a0000000007f", "optimised out"),  # implicit_pointer
        ("e5", "operation 0xe5 that is not known"),
        ("0c0000", "cut short"),
        ("10", "cut short"),
        ("9e05", "cut short"),
    ],
)
def test_what_is_no_expression_is_said_so(data: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Expression(bytes.fromhex(data))
