"""Where a standalone image keeps what its probes find, and in which form, for the tools that read it.

Such an image has jumps at its sites and needs no handler. All words are 64 bits, little-endian, as every machine of
these has them.

    count    a counter for each site, in the order of the manifest's sites
    mix      a counter for each site that counts, in that order; then, at a multiple of 64 bytes from the first, a ring,
             whose records have one of several forms: which one follows from the site. All its places are as long as
             the longest form
    record   a ring. First the number of records begun, then two words for writers that wait, and five unused ones.
             After that `capacity` places of `stride` bytes each; record n is in place n modulo `capacity`: n + 1, which
             is written last, the site's row, and a word for each field, or several. While a place is written to, the
             highest bit of its first word is set: a writer that finds it set, a turn of the ring later, writes to
             another place, after the others, which is never read

Where writers wait, one with the number n does so while n plus the second word is negative, as a number of 64 bits:
a reader stores `until(n)` there, and then there is room for the records before n. At each look a writer takes one from
the third word, and when that is negative it sets the second to 0, so that nobody waits any more. So it is before the
first reader comes.

Fields are arg0, arg1, ...; names of registers, the PC's being where the site is now; and

    time     the CPU's clock: rdtsc, cntvct_el0, rdtime
    cpu      the number that the CPU itself has: its APIC ID, mpidr_el1, mhartid
    task     the address of Linux's current task; 0: there is none yet
    task+N   the word at the offset N in it; 0: there is none
    task+N:M the word at the offset M from where that word points to; 0: there is no task yet
    stack*N  a word that says how many follow, and these: up to N words of the stack, from its pointer to the end of its
             page. stack*N+OFFSET:SIZE: or to the end of the current task's stack, if the pointer is in that; it has
             SIZE bytes, from the address at OFFSET in the task. N words are reserved in any case

The section .note.kinst tells others where: a note of the owner kinst, of type 1. Its description has words, too: this
form's version, 1; 0 for count and 1 for record; link address, physical address and size of the data; the number of
sites; the capacity of the ring; and the names of its fields, separated by commas, padded with zeros. Of a mix the
version is 2, and after the capacity come two more words: the number of counters, and the length of the names, of which
those of a form end with a semicolon; and behind these, padded with zeros as well, a byte for each site: 0 if it counts,
else the number of its form, from 1.
"""

import re
import struct
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.values import dataclass

RING_HEAD: Final = 64  # bytes before the first place
ROOM: Final = 8  # where writers that wait look, from the beginning of the ring
PATIENCE: Final = 16  # and how often they still do
TIME: Final = "time"
CPU: Final = "cpu"
TASK: Final = "task"
WORD: Final = 8
MOST_FORMS: Final = 255
MOST_FIELDS: Final = 32
MOST_STACK: Final = 512  # words
RETURN_ADDRESS: Final = 4  # words of the stack with a return address that was just pushed
_MEMBER: Final = re.compile(rf"{TASK}\+(0x[0-9a-f]{{1,4}})")
_BEHIND: Final = re.compile(rf"{TASK}\+(0x[0-9a-f]{{1,4}}):(0x[0-9a-f]{{1,6}})")
_STACK: Final = re.compile(r"stack\*([1-9][0-9]{0,3})(?:\+(0x[0-9a-f]{1,4}):(0x[0-9a-f]{1,6}))?")


class Action(StrEnum):
    """What a probe does in the image itself."""

    COUNT = "count"
    RECORD = "record"
    MIX = "mix"  # some sites count, and others record, what each of them is asked for


@dataclass(frozen=True, slots=True)
class StackField:
    """A field of so many words of the stack. `offset` is that of a word in Linux's current task, at which its stack
    begins, of so many bytes; `size` is 0 where only the page counts."""

    words: int
    offset: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"stack*{self.words}" + (f"+{self.offset:#x}:{self.size:#x}" if self.size else "")


def member_field(offset: int) -> str:
    """The field of a word of Linux's current task."""
    return f"{TASK}+{offset:#x}"


def member_of(field: str) -> int | None:
    """The offset that such a field is about; None: it is another one."""
    found = _MEMBER.fullmatch(field)
    return None if found is None else int(found[1], 16)


def behind_field(member: int, offset: int) -> str:
    """The field of a word behind a pointer in Linux's current task."""
    return f"{TASK}+{member:#x}:{offset:#x}"


def behind_of(field: str) -> tuple[int, int] | None:
    """The offsets that such a field is about: of the pointer in the task, and from where it points to; None: it is
    another one."""
    found = _BEHIND.fullmatch(field)
    return None if found is None else (int(found[1], 16), int(found[2], 16))


def stack_of(field: str) -> StackField | None:
    """What a field of the stack says; None: it is another one."""
    found = _STACK.fullmatch(field)
    return None if found is None else StackField(int(found[1]), int(found[2] or "0", 16), int(found[3] or "0", 16))


def asks_for_task(field: str) -> bool:
    """Whether a field is about Linux's current task."""
    stack = stack_of(field)
    if member_of(field) is not None or behind_of(field) is not None:
        return True
    return field == TASK or (stack is not None and stack.size > 0)


def width_of(field: str) -> int:
    """How many words a field has in a record."""
    stack = stack_of(field)
    return 1 if stack is None else 1 + stack.words


@dataclass(frozen=True, slots=True)
class Standalone:
    """What was asked for, and where it was put. `address` is a link address, `load_address` physical."""

    action: Action
    address: int
    load_address: int
    size: int  # bytes
    capacity: int = 0  # of the ring: a power of two
    fields: tuple[str, ...] = ()
    waits: bool = False  # writers wait for room in the ring
    forms: tuple[tuple[str, ...], ...] = ()  # of a mix: the fields of each form of its records
    counters: int = 0  # of a mix: how many of its sites count

    @property
    def has_counters(self) -> bool:
        """Whether there are counters, which begin at `address`."""
        return self.action is Action.COUNT or self.counters > 0

    @property
    def has_ring(self) -> bool:
        """Whether there are records."""
        return self.action is not Action.COUNT

    @property
    def record_forms(self) -> tuple[tuple[str, ...], ...]:
        """The fields of each form of record that there is."""
        return self.forms if self.action is Action.MIX else (self.fields,) * self.has_ring

    @property
    def every_field(self) -> frozenset[str]:
        """What records of any form have."""
        return frozenset(field for form in self.record_forms for field in form)

    def forms_at(self, sites: int, forms: bytes) -> NDArray[np.intp]:
        """For each of so many sites, which of `record_forms` it records; -1: it counts. `forms`: see
        `Manifest.forms`."""
        if self.action is Action.MIX:
            return np.frombuffer(forms, np.uint8).astype(np.intp) - 1
        return np.full(sites, 0 if self.has_ring else -1)

    @property
    def ring(self) -> int:
        """The link address of the ring."""
        return self.address + self._before_ring

    @property
    def _before_ring(self) -> int:
        return -(-WORD * self.counters // RING_HEAD) * RING_HEAD

    @property
    def stride(self) -> int:
        """Bytes of a record's place: the longest form."""
        return WORD * (2 + max((sum(map(width_of, form)) for form in self.record_forms), default=0))

    @property
    def ring_size(self) -> int:
        """Bytes of the ring, with the place that nobody reads."""
        return RING_HEAD + (self.capacity + 1) * self.stride

    @property
    def kept_size(self) -> int:
        """Bytes of the ring, and of the counters of a mix before it."""
        return self._before_ring + self.ring_size

    def packed(self) -> list[int | str]:
        """The same for the manifest's head."""
        bounds = (self.address, self.load_address, self.size, self.capacity, int(self.waits))
        if self.action is Action.MIX:
            return [self.action.value, *bounds, self.counters, *map(",".join, self.forms)]
        return [self.action.value, *bounds, *self.fields]


def until(number: int) -> int:
    """What a reader stores at `ROOM` when there is room for the records before this one."""
    return (1 << 63) - number


_NOTE: Final = struct.Struct("<III8s")
_OWNER: Final = b"kinst"


def note_of(standalone: Standalone, sites: int, forms: bytes = b"") -> bytes:
    """The content of .note.kinst. `forms`: of a mix, the form of each site (`Manifest.forms`)."""
    is_mix = standalone.action is Action.MIX
    bounds = standalone.address, standalone.load_address, standalone.size
    words = struct.pack("<7Q", 1 + is_mix, tuple(Action).index(standalone.action), *bounds, sites, standalone.capacity)
    fields = ",".join(standalone.fields).encode()
    if is_mix:
        fields = "".join(f"{','.join(form)};" for form in standalone.forms).encode()
        words += struct.pack("<2Q", standalone.counters, len(fields))
    description = words + _padded(fields) + _padded(forms)
    return _NOTE.pack(len(_OWNER) + 1, len(description), 1, _OWNER) + description


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % WORD)
