"""Trees of areas that were drawn: what is found at an address is what a search of all areas finds."""

import struct
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.userspace.mappings import LinuxMappings, Mapping, page_size
from kinst.targets.c_types import Aggregate, AggregateKind, Array, CType, Integer, Member, NoImageTypes, Pointer

KERNEL = 0xFFFF_8880_0000_0000
LONG = Integer("unsigned long", 8, is_signed=False)
NOTHING = Pointer(LONG)
PAGE = 4096
LAST = (1 << 64) - 1


def _struct(tag: str, size: int, **members: tuple[int, CType]) -> Aggregate:
    found = tuple(Member(name, kind, offset) for name, (offset, kind) in members.items())
    return Aggregate(AggregateKind.STRUCT, tag, size, 8, found)


TREE = _struct("maple_tree", 16, ma_root=(8, NOTHING))
TYPES = {
    f"struct {one.tag}": one
    for one in (
        TREE,
        _struct("task_struct", 64, mm=(16, NOTHING)),
        _struct("mm_struct", 64, mm_mt=(32, TREE)),
        _struct("vm_area_struct", 64, vm_start=(0, LONG), vm_end=(8, LONG), vm_pgoff=(24, LONG), vm_file=(40, NOTHING)),
        _struct("maple_range_64", 256, pivot=(8, Array(LONG, 15)), slot=(128, Array(NOTHING, 16))),
        _struct("maple_arange_64", 256, pivot=(8, Array(LONG, 9)), slot=(80, Array(NOTHING, 10))),
    )
}


class Types(NoImageTypes):
    def type_named(self, name: str, module: str = "") -> CType | None:
        return TYPES.get(name)

    def obstacle(self) -> str:
        return ""


class Memory:
    """The kernel's memory, filled from its start."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, content: bytes) -> int:
        """The address of some bytes, a multiple of 256."""
        self.data += bytes(-len(self.data) % 256)
        self.data += content + bytes(256)
        return KERNEL + len(self.data) - len(content) - 256

    def read(self, address: int, size: int) -> bytes:
        if not 0 <= address - KERNEL <= len(self.data) - size:
            raise Fault(FaultKind.BADADDR, address)
        return bytes(self.data[address - KERNEL : address - KERNEL + size])

    def load(self, address: int, size: int) -> int:
        return int.from_bytes(self.read(address, size), "little")

    def string(self, address: int, limit: int) -> bytes:
        return self.read(address, limit).partition(b"\0")[0]


Slot = tuple[int, int]  # the last index, and what is there


def _node(memory: Memory, kind: int, slots: Sequence[Slot], last: int) -> int:
    """A node, as a slot has it. The pivot of the last slot is that of the node, and left out."""
    count, at = (10, 80) if kind == 3 else (16, 128)
    pivots = [end for end, _ in slots if end != last]
    body = bytearray(256)
    struct.pack_into(f"<{len(pivots)}Q", body, 8, *pivots)
    struct.pack_into(f"<{len(slots)}Q", body, at, *(entry for _, entry in slots))
    assert len(slots) <= count
    return memory.put(bytes(body)) | kind << 3 | 4


def _tree(memory: Memory, slots: Sequence[Slot], width: int) -> int:
    """The root of a tree; `width`: the most slots of a node."""
    kind = 1
    while len(slots) > width or kind == 1:
        groups = [slots[at : at + width] for at in range(0, len(slots), width)]
        slots = [(group[-1][0], _node(memory, kind, group, group[-1][0])) for group in groups]
        kind = 3 if kind == 1 else 2
    return (_node(memory, kind, slots, LAST) if len(slots) > 1 else slots[0][1]) & ~4 | 2


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=60), st.integers(2, 9)
)
def test_what_is_found_is_what_is_there(drawn: list[tuple[int, int, bool]], width: int) -> None:
    memory, at = Memory(), 0x400000
    slots: list[Slot] = []
    areas: list[Mapping] = []
    for pages, hole, has_file in drawn:
        if hole:
            slots.append((at + hole * PAGE - 1, 0))
            at += hole * PAGE
        end, file = at + pages * PAGE, KERNEL + 0x7000 if has_file else 0
        slots.append((end - 1, memory.put(struct.pack("<6Q", at, end, 0, at >> 12, 0, file))))
        areas.append(Mapping(at, end, at, file))
        at = end
    root = _tree(memory, [*slots, (LAST, 0)], width)
    space = memory.put(struct.pack("<8Q", *([0] * 5), root, 0, 0))
    found = LinuxMappings(Types(), memory, PAGE)
    assert found.obstacle() == ""
    assert found.space_of(memory.put(struct.pack("<3Q", 0, 0, space))) == space
    files = [one for one in areas if one.file]
    assert list(found.each(space)) == files
    for address in (*range(0x400000 - PAGE, at + PAGE, PAGE // 2), *(one.end - 1 for one in areas)):
        assert found.at(space, address) == next((one for one in files if one.start <= address < one.end), None)


def test_other_spaces_have_nothing() -> None:
    memory = Memory()
    found = LinuxMappings(Types(), memory, PAGE)
    assert found.at(0, 0x1000) is None
    assert list(found.each(0)) == []
    circle = memory.put(bytes(256))
    struct.pack_into("<16Q", memory.data, circle - KERNEL + 128, *[circle | 2 << 3 | 4] * 16)
    space = memory.put(struct.pack("<8Q", *([0] * 5), circle | 2 << 3 | 2, 0, 0))
    assert found.at(space, 0x1000) is None
    assert list(found.each(space)) == []
    alone = memory.put(struct.pack("<6Q", 0, PAGE, 0, 5, 0, KERNEL))  # a tree with one entry has no node
    space = memory.put(struct.pack("<8Q", *([0] * 5), alone, 0, 0))
    assert found.at(space, 1) == Mapping(0, PAGE, 5 * PAGE, KERNEL)


def test_the_kernel_says_how_large_its_pages_are() -> None:
    """Bits 1 and 2 of an arm64 Image's flags (Documentation/arch/arm64/booting.rst); other machines have no choice."""
    sizes = {None: 4096, 0xA: 4096, 0xC: 16384, 0xE: 65536, 0: 4096}
    assert {flags: page_size(lambda _, flags=flags: flags) for flags in sizes} == sizes  # type: ignore[misc]
