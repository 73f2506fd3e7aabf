"""DWARF location expressions against values worked out by hand, on a trap frame of ours: r<i> holds 0x100 * i, memory
holds at each address that address."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.location_operations import Entered
from kinst.runtime.unwinding.locations import Expression, FiringFrame, Machine
from kinst.targets.debuginfo.dwarf.unit_terms import BaseType
from kinst.targets.errors import ImageError

UNMAPPED = 0xDEAD_0000
CFA = 0x5000


def read(address: int, size: int) -> bytes:
    if address >= UNMAPPED:
        raise Fault(FaultKind.BADADDR, address)
    return address.to_bytes(16, "little")[:size]


FIRING = cast(Firing, SimpleNamespace(regs=[0x100 * index for index in range(16)]))
MACHINE = Machine(registers=[*range(15), -1], cfa=lambda _firing: CFA, read=read, bias=0x10)


class Unit:
    """What a unit says: its base types at offsets 1, 2, ...; word n of .debug_addr is 0x2000 + n."""

    unit = 0x1000

    def base_type(self, offset: int) -> BaseType:
        if offset not in TYPES:
            raise ImageError(f"no base type at {offset}")
        return TYPES[offset]

    def address(self, index: int) -> int:
        return 0x2000 + index


def value(data: str, size: int = 8, base: str = "") -> int:
    return Expression(bytes.fromhex(data), Unit(), bytes.fromhex(base)).value(FiringFrame(MACHINE, FIRING), size)


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
        ("559d0804", 0x50),  # bit_piece: 8 bits from the 4th on
        ("559d0408559d0400", 0x05),  # two of them
        ("77049d0c04", 0x070),  # 12 bits in memory, from the 4th on
        ("770093089308", 0x700),  # what is missing lies beyond a word
        ("5593ffffffffffff7f", 0x500),  # a piece of more bytes than there are
        ("5593089dffffffffffff7fffffffffffff7f", 0x500),
        ("a1029f", 0x2012),  # addrx: as loaded
        ("fb029f", 0x2012),  # GNU_addr_index
        ("a2039f", 0x2003),  # constx
    ],
)
def test_values(data: str, expected: int) -> None:
    assert value(data) == expected


U8, S8, U16, S32, U64, U128, F64, HUGE = range(1, 9)
TYPES = {
    U8: BaseType("u8", 1, is_signed=False),
    S8: BaseType("s8", 1, is_signed=True),
    U16: BaseType("u16", 2, is_signed=False),
    S32: BaseType("s32", 4, is_signed=True),
    U64: BaseType("u64", 8, is_signed=False),
    U128: BaseType("u128", 16, is_signed=False),
    F64: BaseType("double", 8, is_signed=True, is_integer=False),
    HUGE: BaseType("huge", 1 << 60, is_signed=False),
}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("08fea802a8049f", -2),  # convert: a byte with its sign, to 32 bits
        ("08fea801a8049f", 0xFE),
        ("08fef702f7049f", -2),  # GNU_convert
        ("08fea802a8009f", -2),  # to a word of no type
        ("0a3412a8019f", 0x34),
        ("09ffa805a805a9009f", -1),
        ("08fea802a9019f", 0xFE),  # reinterpret
        ("08fea802f9019f", 0xFE),
        ("a40402feff9f", 0xFFFE),  # const_type
        ("a40304ffff00809f", 0xFFFF),
        ("f40304ffff00809f", 0xFFFF),
        ("a57e019f", None),  # a register that is not there
        ("a505019f", 0),  # regval_type: the low byte of 0x500
        ("f505039f", 0x500),
        ("7701a601039f", 0x01),  # deref_type
        ("7701f602039f", 0x701),
        ("7700a61006a8039f", 0x700),  # 16 bytes of memory
        ("08fea80208fda802299f", 0),  # eq
        ("08fea80208fda8022b9f", 1),  # gt with a sign: -2, -3
        ("08fea80108fda8012d9f", 0),  # lt without: 254, 253
        ("08fea80208fda8022d9f", 0),
        ("08f8a8023aa802229f", 2),  # plus wraps: -8 + 10
        ("08f8a80108fea8011b9f", 0),  # div without a sign
        ("08f8a80208fea8021b9f", 4),  # and with
        ("08f9a80232a8021d9f", -1),  # mod: -7, 2
        ("08f8a80231259f", 0x7C),  # shr takes no sign
        ("08f8a80231269f", -4),  # shra does
        ("08f8a80131a801249f", 0xF0),  # shl; its count has a type
        ("08f8a8021f9f", 8),
        ("08f8a802199f", 8),
        ("08f8a801209f", 7),
        ("08f8a8021223019f", -7),  # dup, plus_uconst: of no type
    ],
)
def test_values_of_a_type(data: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(Fault, match="register 126 is none"):
            value(data)
    else:
        assert value(data) == expected & (1 << 64) - 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("08fea80208fda801229f", None),  # of one size: taken as they are
        ("08fea80208fda803229f", "mixes types"),
        ("08fea80230229f", "mixes types"),
        ("08fea902", "another size"),
        ("3809fd24", "shifts by more bits than there are"),  # GCC for arm64 means to the right
        ("38084025", "shifts by more bits than there are"),
        ("38a80138a80124", "shifts by more bits than there are"),
        ("08f8a80230a8021b9f", ""),  # by 0
    ],
)
def test_arithmetic_that_makes_no_sense(data: str, text: str | None) -> None:
    if text is None:
        assert value(data, 1) == 0xFB
        return
    with pytest.raises(Fault) as caught:
        value(data)
    assert text in caught.value.text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("a301559f", Entered(5)),
        ("f301559f", Entered(5)),
        ("a30290219f", Entered(33)),
        ("a3037500069f", Entered(5, 8)),  # what it pointed to
        ("a304750094029f", Entered(5, 2)),
        ("a30492050006", Entered(5, 8)),
        ("fa100000009f", Entered(-1, 0, 0x1010)),  # GNU_parameter_ref
    ],
)
def test_what_is_asked_of_the_entry(data: str, expected: Entered) -> None:
    asked = []

    def entered(_firing: Firing, wanted: Entered) -> int:
        asked.append(wanted)
        return 0x77

    frame = FiringFrame(replace(MACHINE, entered=entered), FIRING)
    expression = Expression(bytes.fromhex(data), Unit())
    assert (expression.value(frame) if data.endswith("9f") else expression.address(frame)) == 0x77
    assert asked == [expected]


def test_entry_values_within_entry_values_end() -> None:
    nested = b"\x55"
    while len(nested) < 30_000:
        size = len(nested)
        nested = bytes([0xA3, size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + nested
    with pytest.raises(Fault, match="optimised out"):
        Expression(nested + b"\x9f").value(FiringFrame(MACHINE, FIRING))


@pytest.mark.parametrize("data", ["a303750806", "a3025506", "a3009f", "a30231069f"])
def test_other_entry_values_are_optimised_out(data: str) -> None:
    with pytest.raises(Fault, match="optimised out"):
        value(data)


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
        ("9304559304", FaultKind.ILLOP, "optimised out"),  # the first half
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
        ("a4", "cut short"),
        ("a807", "computes with double, which is no integer"),
        ("a808", "computes with huge, which is an integer of 1152921504606846976 bytes"),
        ("a50507", "computes with double"),
        ("a809", "no base type at 9"),
    ],
)
def test_what_is_no_expression_is_said_so(data: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Expression(bytes.fromhex(data), Unit())
