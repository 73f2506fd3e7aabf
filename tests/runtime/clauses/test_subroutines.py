"""The table of subroutines: numbers, memory, addresses, faults, limits of strings."""

import ipaddress
import random
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.clauses.guest.guest_memory import GuestMemory
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.clauses.subroutines import Context, Subroutine, table
from kinst.runtime.dlang.check.functions import SUBROUTINES
from kinst.runtime.trap.faults import Fault, FaultKind
from tests.runtime.clauses.compile.running import GUEST, Ram, mapped

STRSIZE = 64
WORD = (1 << 64) - 1


class Machine:
    """Two pages of guest memory and 4 KB of scratch."""

    def __init__(self, strsize: int = STRSIZE) -> None:
        self.ram = Ram()
        self.scratch = Scratch(4096)
        self.memory = GuestMemory(self.scratch, mapped, mapped, self.ram)
        self.context = Context()
        self._table = table(self, self.scratch, strsize, self.context)

    def __getitem__(self, name: str) -> Subroutine:
        return self._table[name]

    def address(self, name: str, *arguments: int) -> int:
        """The result of a subroutine that gives a number."""
        result = self[name](*arguments)
        assert isinstance(result, int)
        return result


@pytest.fixture
def machine() -> Machine:
    return Machine()


def fault(call: Subroutine, *arguments: int | bytes) -> Fault:
    with pytest.raises(Fault) as caught:
        call(*arguments)
    return caught.value


def test_every_subroutine_of_the_language_is_there(machine: Machine) -> None:
    for name in set(SUBROUTINES) - {"speculation"}:
        assert callable(machine[name])


# -- numbers


@given(st.integers(-(1 << 63), WORD))
def test_network_byte_order(value: int) -> None:
    machine = Machine()
    for letter, code in (("s", "H"), ("l", "L"), ("ll", "Q")):
        size = struct.calcsize("<" + code)
        expected = struct.unpack(">" + code, struct.pack("<" + code, value & (1 << 8 * size) - 1))[0]
        assert machine["hton" + letter](value) == machine["ntoh" + letter](value) == expected


def test_device_numbers(machine: Machine) -> None:
    assert machine["getmajor"](0x1234_5678_9ABC_DEF0) == 0x1234_5678
    assert machine["getminor"](0x1234_5678_9ABC_DEF0) == 0x9ABC_DEF0


def test_random_numbers_are_random_and_repeatable() -> None:
    first, second = Machine(), Machine()
    numbers = [first["rand"]() for _ in range(2000)]

    assert numbers == [second["rand"]() for _ in range(2000)]
    assert len(set(numbers)) > 1990
    assert all(isinstance(number, int) and 0 <= number < 1 << 31 for number in numbers)
    for bit in range(31):
        ones = sum(int(number) >> bit & 1 for number in numbers)
        assert 850 < ones < 1150


def test_bare_machine_has_no_processes_and_files(machine: Machine) -> None:
    assert machine["progenyof"](0) == 1
    assert machine["progenyof"](1) == 0
    assert machine["getf"](0) == 0


@pytest.mark.parametrize(
    "name",
    ["mutex_owned", "mutex_owner", "mutex_type_adaptive", "mutex_type_spin", "rw_read_held", "rw_write_held",
     "rw_iswriter", "sx_shared_held", "sx_exclusive_held", "sx_isexclusive", "msgsize", "msgdsize"],
)  # fmt: skip
def test_what_asks_a_kernel_fails(machine: Machine, name: str) -> None:
    found = fault(machine[name], GUEST)

    assert found.kind is FaultKind.ILLOP
    assert name in found.text


# -- memory


def test_alloca_gives_zeros_until_there_are_none(machine: Machine) -> None:
    first, second = machine.address("alloca", 10), machine.address("alloca", 4000)

    assert machine.memory.read(first, 10) == bytes(10)
    assert second >= first + 10
    assert fault(machine["alloca"], 4000).kind is FaultKind.NOSCRATCH
    assert fault(machine["alloca"], WORD).kind is FaultKind.NOSCRATCH


def test_copyin(machine: Machine) -> None:
    machine.ram.data[16:20] = b"data"

    assert machine.memory.read(machine.address("copyin", GUEST + 16, 4), 4) == b"data"
    assert machine.memory.read(machine.address("copyin", GUEST, 0), 0) == b""
    found = fault(machine["copyin"], 0x10, 4)
    assert (found.kind, found.value) == (FaultKind.BADADDR, 0x10)
    assert fault(machine["copyin"], GUEST, 1 << 40).kind is FaultKind.NOSCRATCH
    assert fault(machine["copyin"], GUEST, -1).kind is FaultKind.NOSCRATCH


def test_copyinstr(machine: Machine) -> None:
    machine.ram.data[:6] = b"hello\0"
    machine.ram.data[100:300] = b"x" * 200

    assert machine["copyinstr"](GUEST) == b"hello"
    assert machine["copyinstr"](GUEST, 3) == b"hel"
    assert machine["copyinstr"](GUEST, 5) == b"hello"
    assert machine["copyinstr"](GUEST, 1000) == b"hello"
    assert machine["copyinstr"](GUEST + 100) == b"x" * (STRSIZE - 1)
    assert machine["copyinstr"](GUEST + 100, STRSIZE - 1) == b"x" * (STRSIZE - 1)
    assert machine["copyinstr"](GUEST + 100, STRSIZE) == b"x" * (STRSIZE - 1)
    assert fault(machine["copyinstr"], 0x10).kind is FaultKind.BADADDR


@pytest.mark.parametrize("order", [("bcopy", (0, 2, 1)), ("copyinto", (0, 1, 2))])
def test_copies_into_scratch(machine: Machine, order: tuple[str, tuple[int, int, int]]) -> None:
    name, places = order
    machine.ram.data[:8] = b"12345678"
    to = machine.address("alloca", 8)

    def copy(*arguments: int) -> int | bytes:
        return machine[name](*(arguments[place] for place in places))

    assert copy(GUEST + 2, 4, to) == 0
    assert machine.memory.read(to, 8) == b"3456\0\0\0\0"
    found = fault(copy, GUEST, 4, GUEST + 100)
    assert (found.kind, found.value) == (FaultKind.BADADDR, GUEST + 100)
    assert fault(copy, GUEST, 9, to).kind is FaultKind.BADADDR
    assert fault(copy, GUEST, 1 << 62, to).kind is FaultKind.BADADDR
    assert fault(copy, 0, 4, to).kind is FaultKind.BADADDR


def test_copies_out_to_the_guest(machine: Machine) -> None:
    source = machine.address("alloca", 8)
    machine.memory.write(source, b"ab\0defgh")

    machine["copyout"](source, GUEST + 8, 4)
    machine["copyoutstr"](source, GUEST + 16, 8)
    machine["copyoutstr"](b"text", GUEST + 24, 3)
    machine["copyoutstr"](b"text", GUEST + 32, 100)

    assert machine.ram.data[8:13] == b"ab\0d\0"
    assert machine.ram.data[16:20] == b"ab\0\0"
    assert machine.ram.data[24:28] == b"tex\0"
    assert machine.ram.data[32:37] == b"text\0"
    assert fault(machine["copyout"], source, 0x10, 4).kind is FaultKind.BADADDR


def test_memref_and_memstr(machine: Machine) -> None:
    machine.ram.data[:12] = b"one\0two\0end\0"

    reference = machine.address("memref", GUEST, 12)
    assert machine.memory.load(reference, 8) == GUEST
    assert machine.memory.load(reference + 8, 8) == 12
    assert machine["memstr"](GUEST, ord(" "), 12) == b"one two end"
    assert machine["memstr"](GUEST, ord(","), 5) == b"one,"
    assert machine["memstr"](GUEST, 0, 12) == b"one"
    assert machine["memstr"](GUEST, ord(" "), 0) == b""
    assert fault(machine["memstr"], GUEST, 32, 4097).kind is FaultKind.ILLOP
    assert fault(machine["memstr"], GUEST, 32, -1).kind is FaultKind.ILLOP


# -- strings


def test_strings_keep_to_strsize() -> None:
    """What is made anew has a NUL within it, but for substr()."""
    machine = Machine(strsize=8)
    long = b"a" * 8

    assert machine["basename"](long) == machine["dirname"](long + b"/b") == machine["tolower"](long) == b"a" * 7
    assert machine["strtok"](long, b",") == b"a" * 7
    assert machine["substr"](long, 0) == machine["strchr"](long, 97) == long
    assert machine["lltostr"](-1, 16) == b"0xffffff"
    assert machine["json"](b'["aaaa"]', b"[0]") == b"aaaa"
    assert machine["strlen"](long) == 8
    assert machine["strlen"](b"abc") == 3


def test_letters_of_ascii_change_case(machine: Machine) -> None:
    every = bytes(range(1, 128))
    machine = Machine(strsize=256)

    assert machine["toupper"](every) == every.decode().upper().encode()
    assert machine["tolower"](every) == every.decode().lower().encode()
    assert machine["toupper"](b"\xe9\xffz") == b"\xe9\xffZ"


def test_tokens_end_with_the_firing(machine: Machine) -> None:
    assert machine["strtok"](b"a,b,c", b",") == b"a"
    assert machine["strtok"](0, b",") == b"b"
    machine.context.begin()
    assert machine["strtok"](0, b",") == 0


@pytest.mark.parametrize("name", ["basename", "strlen", "toupper", "strtoll", "cleanpath", "dirname"])
def test_null_is_no_text(machine: Machine, name: str) -> None:
    found = fault(machine[name], 0)

    assert (found.kind, found.value) == (FaultKind.BADADDR, 0)


def test_null_is_no_second_text_either(machine: Machine) -> None:
    for name in ("index", "json", "rindex", "strjoin", "strstr", "strtok"):
        assert fault(machine[name], b"a", 0).kind is FaultKind.BADADDR
    assert fault(machine["strchr"], 0, ord("a")).kind is FaultKind.BADADDR


def test_arguments_may_be_left_out(machine: Machine) -> None:
    assert machine["index"](b"abcabc", b"c") == 2
    assert machine["index"](b"abcabc", b"c", 3) == 5
    assert machine["rindex"](b"abcabc", b"c") == 5
    assert machine["rindex"](b"abcabc", b"c", 4) == 2
    assert machine["substr"](b"abcabc", 4) == b"bc"
    assert machine["substr"](b"abcabc", 1, 2) == b"bc"
    assert machine["lltostr"](255) == b"255"
    assert machine["lltostr"](255, 16) == b"0xff"
    assert machine["strtoll"](b"ff") == 0
    assert machine["strtoll"](b"ff", 16) == 255


# -- addresses

AF_INET6 = 26


def ntop(machine: Machine, family: int, address: bytes) -> str:
    machine.ram.data[: len(address)] = address
    result = machine["inet_ntop"](family, GUEST)
    assert isinstance(result, bytes)
    return result.decode()


@given(st.binary(min_size=4, max_size=4))
def test_ipv4_addresses(address: bytes) -> None:
    machine = Machine()

    assert ntop(machine, socket.AF_INET, address) == socket.inet_ntoa(address)
    assert machine["inet_ntoa"](GUEST) == socket.inet_ntoa(address).encode()


@given(st.lists(st.sampled_from([0, 0, 1, 0x80, 0xFFFF, 0xABCD]), min_size=8, max_size=8))
def test_ipv6_addresses_mean_what_they_meant(words: list[int]) -> None:
    address = struct.pack(">8H", *words)
    text = ntop(Machine(), AF_INET6, address)

    assert ipaddress.IPv6Address(text).packed == address
    assert text == text.lower()
    assert len(text) < 46


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("::", "::"),
        ("::1", "::1"),
        ("fe80::214:4fff:fe0b:76c8", "fe80::214:4fff:fe0b:76c8"),
        ("1080:0:0:0:8:800:200c:417a", "1080::8:800:200c:417a"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("1:0:3:4:5:6:7:8", "1::3:4:5:6:7:8"),
        ("1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7:0"),
        ("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"),
        ("0:0:3:4:5:6:7:8", "::3:4:5:6:7:8"),
        ("::ffff:192.168.1.1", "::ffff:192.168.1.1"),
        ("::10.0.0.1", "::10.0.0.1"),
        ("ff01::101", "ff01::101"),
    ],
)
def test_ipv6_addresses_as_classic_dtrace_shows_them(machine: Machine, written: str, shown: str) -> None:
    for family in (10, 26, 28):
        assert ntop(machine, family, socket.inet_pton(socket.AF_INET6, written)) == shown


def test_inet_ntoa6_shows_embedded_addresses_alone(machine: Machine) -> None:
    for written, shown in (
        ("::ffff:1.2.3.4", b"1.2.3.4"),
        ("::1.2.3.4", b"1.2.3.4"),
        ("::1", b"::1"),
        ("::2", b"0.0.0.2"),
    ):
        machine.ram.data[:16] = socket.inet_pton(socket.AF_INET6, written)
        assert machine["inet_ntoa6"](GUEST) == shown


def test_addresses_must_be_readable_and_of_a_known_family(machine: Machine) -> None:
    assert fault(machine["inet_ntop"], 1, GUEST).kind is FaultKind.ILLOP
    assert fault(machine["inet_ntop"], AF_INET6, 0).kind is FaultKind.BADADDR
    assert fault(machine["inet_ntoa"], 0).kind is FaultKind.BADADDR
    assert fault(machine["inet_ntoa6"], 8).kind is FaultKind.BADADDR


def test_random_addresses_read_back() -> None:
    numbers = random.Random(1)
    machine = Machine()
    for _ in range(200):
        address = bytes(numbers.choice((0, 0, 0, numbers.randrange(256))) for _ in range(16))
        assert ipaddress.IPv6Address(ntop(machine, AF_INET6, address)).packed == address
