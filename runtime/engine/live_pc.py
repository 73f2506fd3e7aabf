"""A running engine -> where in the host's memory its CPU keeps the PC, found by experiment.

Unicorn's function that writes the PC ends the run and begins it again, which takes longer than everything else at a
breakpoint. In a callback for an exception no translated code holds a copy of the PC, so the word itself can be changed.
Its place is not part of the interface. It is in a structure that the engine points to, and it is the only word there
that follows when the PC is written.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

_ENGINE: Final = 4096  # bytes of uc_struct that are looked through for pointers
_CPU: Final = 1 << 16  # bytes of the structures that it points to; the CPU's own has its cache of 32 KiB before the PC
_CANARIES: Final = (0x5AA5_1357_0000_9BD0, 0x3CC3_2468_0000_ACE0, 0x6996_0BAD_0000_C0D0)
_HIGHEST: Final = 1 << 56  # host addresses are below


def find_live_pc(engine: int, read: Callable[[], int], write: Callable[[int], None]) -> int | None:
    """The address of the word; None if there is not exactly one that it can be.

    Args:
        engine: the address of uc_struct.
        read: gives the PC by the interface.
        write: sets the PC, and leaves no copy of it in memory.
    """
    before = read()
    # By pread and not ctypes: most words that look like pointers are none, and a bad one must be an error, no crash.
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return None
    try:
        write(_CANARIES[0])
        places = set(_places(memory, engine, _CANARIES[0]))
        write(_CANARIES[1])
        places = _having(memory, places, _CANARIES[1])
        if len(places) != 1:
            return None
        # The other direction: a copy that Unicorn only writes would have passed until here.
        place = ctypes.c_uint64.from_address(places.pop())
        place.value = _CANARIES[2]
        return ctypes.addressof(place) if read() == _CANARIES[2] else None
    finally:
        os.close(memory)
        write(before)


def memory_of_engine(engine: int, size: int) -> list[tuple[int, bytes]]:
    """The structures that uc_struct at this address points to: each address with at most `size` bytes that are there;
    none if this process cannot read its own memory like that."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return []
    try:
        return [(start, _read(memory, start, size)) for start in _pointers(_read(memory, engine, _ENGINE))]
    finally:
        os.close(memory)


def _places(memory: int, engine: int, value: int) -> Iterator[int]:
    """Where a word has a value in what the engine points to."""
    wanted = value.to_bytes(8, "little")
    for start in _pointers(_read(memory, engine, _ENGINE)):
        content = _read(memory, start, _CPU)
        found = content.find(wanted)
        while found >= 0:
            if (start + found) % 8 == 0:
                yield start + found
            found = content.find(wanted, found + 1)


def _pointers(content: bytes) -> set[int]:
    """Words that may be addresses of structures."""
    words = memoryview(content[: len(content) & -8]).cast("Q")
    return {word for word in words if 0 < word < _HIGHEST and word % 8 == 0}


def _read(memory: int, address: int, size: int) -> bytes:
    """As many bytes as are mapped there."""
    try:
        return os.pread(memory, size, address)
    except OSError:
        return b""


def _having(memory: int, places: set[int], value: int) -> set[int]:
    """Those places whose word has a value."""
    # One buffer for all: a new `bytes` for each could be allocated in freed memory that is itself one of the places.
    word = bytearray(8)
    found = set()
    for place in places:
        with suppress(OSError):  # it was unmapped meanwhile
            os.preadv(memory, [word], place)
            if int.from_bytes(word, "little") == value:
                found.add(place)
    return found
