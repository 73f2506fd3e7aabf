"""Register name -> the call that reads or writes it: plain, wide, system, model-specific or descriptor registers."""

import ctypes
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from kinst.runtime.engine.registers.state_words import StateWords
from kinst.targets.values import dataclass

_BUFFER_SIZE: Final = 64  # bytes of the widest register, zmm

# Registers that are not in `EngineFacts.system_registers` are named by their encoding: arm64's by the generic name
# S<op0>_<op1>_C<n>_C<m>_<op2> (Arm ARM C5.1.2), amd64's as msr:0x<number>.
_GENERIC: Final = re.compile(r"s([0-3])_([0-7])_c(\d+)_c(\d+)_([0-7])")

# amd64 descriptor-table registers: "gdtr.base", "tr.selector": offset and size in struct uc_x86_mmr.
_DESCRIPTOR_FIELDS: Final = {"selector": (0, 2), "base": (8, 8), "limit": (16, 4), "flags": (20, 4)}
_WIDE: Final = re.compile(r"(?:v|q|xmm|ymm|zmm)\d+")


@dataclass(frozen=True, slots=True)
class Slot:
    """One register: Unicorn's number, the content of the buffer before the call, and the place of the value in it."""

    number: int
    template: bytes
    offset: int
    size: int
    is_part: bool  # the other fields must be kept: read before writing


class RegisterFile:
    """Registers by name in lower case; implements `kinst.runtime.paging.walker.Registers`."""

    def __init__(
        self,
        number: Callable[[str], int],
        read: Callable[[ctypes.c_int, ctypes.c_void_p], int],
        write: Callable[[ctypes.c_int, ctypes.c_void_p], int],
        hidden: Mapping[str, Callable[[str, int], None]],
        words: StateWords,
        system_registers: Mapping[str, tuple[int, ...]],
    ) -> None:
        """`number` gives the emulator's number of a name; `read` and `write` access one register; `hidden` has
        functions that write hidden registers; `words` are words of the CPU's state that are no registers;
        `system_registers` is that of `EngineFacts`."""
        self.number = number
        self._read = read
        self._write = write
        self._hidden = hidden
        self._words = words
        self._system_registers = system_registers
        self._word_names = words.names
        self._slots: dict[str, tuple[Slot, ctypes.c_int]] = {}
        self._readers: dict[str, Callable[[], int]] = {}
        self._writers: dict[str, Callable[[int], None]] = {}
        self._buffer = (ctypes.c_uint8 * _BUFFER_SIZE)()
        self._pointer = ctypes.c_void_p(ctypes.addressof(self._buffer))
        self._view = memoryview(self._buffer).cast("B")

    def get(self, name: str) -> int:
        """The register's value, unsigned."""
        reader = self._readers.get(name)
        return reader() if reader is not None else self._add_reader(name)()

    def set(self, name: str, value: int) -> None:
        """Change the register; the value is cut to its size."""
        writer = self._writers.get(name)
        if writer is None:
            writer = self._writers[name] = self._new_writer(name)
        writer(value)

    def _new_writer(self, name: str) -> Callable[[int], None]:
        """Make the function that writes a register. Exceptions write many, so most registers have their own buffer."""
        if name in self._hidden:
            return partial(self._hidden[name], name)
        if name in self._word_names:
            return partial(self._words.set, name)
        slot, number = self._slots.get(name) or self._add(name)
        if slot.size != 8 or slot.is_part:
            return partial(self._set_part, slot, number)
        buffer = (ctypes.c_uint8 * _BUFFER_SIZE)(*slot.template)
        write = partial(self._write, number, ctypes.c_void_p(ctypes.addressof(buffer)))
        return partial(_write_word, ctypes.c_uint64.from_buffer(buffer, slot.offset), write)

    def _set_part(self, slot: Slot, number: ctypes.c_int, value: int) -> None:
        view = self._view
        view[: len(slot.template)] = slot.template
        if slot.is_part:
            self._read(number, self._pointer)
        view[slot.offset : slot.offset + slot.size] = (value & (1 << 8 * slot.size) - 1).to_bytes(slot.size, "little")
        self._write(number, self._pointer)

    def _add_reader(self, name: str) -> Callable[[], int]:
        """Make the function that reads a register. Page walks read very often, so each register has its own buffer,
        which keeps the other fields."""
        if name in self._word_names:
            reader = partial(self._words.get, name)
        else:
            slot, number = self._slots.get(name) or self._add(name)
            buffer = (ctypes.c_uint8 * _BUFFER_SIZE)(*slot.template)
            address = ctypes.addressof(buffer)
            read = partial(self._read, number, ctypes.c_void_p(address))
            if slot.size == 8:
                reader = partial(_read_word, read, ctypes.c_uint64.from_buffer(buffer, slot.offset))
            else:
                view = memoryview(buffer).cast("B")[slot.offset : slot.offset + slot.size]
                reader = partial(_read_bytes, read, view)
        self._readers[name] = reader
        return reader

    def _add(self, name: str) -> tuple[Slot, ctypes.c_int]:
        slot = self.slot(name)
        self._slots[name] = slot, ctypes.c_int(slot.number)
        return self._slots[name]

    def slot(self, name: str) -> Slot:
        """How to read a register."""
        # Unicorn has one register number for all system registers, and the buffer says which: the encoding is put in
        # front of the value, as the caller's half of a structure.
        match self._system_registers.get(name) or _encoding(name):
            case (op0, op1, crn, crm, op2):
                fields = (crn, crm, op0, op1, op2, 0, 0, 0)  # struct uc_arm64_cp_reg
                template = b"".join(field.to_bytes(4, "little") for field in fields)
                return Slot(self.number("cp_reg"), template, 24, 8, is_part=False)
            case (model_specific,):
                template = model_specific.to_bytes(4, "little") + bytes(12)  # struct uc_x86_msr
                return Slot(self.number("msr"), template, 8, 8, is_part=False)
        if "." in name:
            register, field = name.split(".")
            offset, size = _DESCRIPTOR_FIELDS[field]
            return Slot(self.number(register), bytes(24), offset, size, is_part=True)
        size = 16 if _WIDE.fullmatch(name) else 8
        return Slot(self.number(name), bytes(size), 0, size, is_part=False)


def _read_word(read: Callable[[], int], word: ctypes.c_uint64) -> int:
    read()
    return word.value


def _write_word(word: ctypes.c_uint64, write: Callable[[], int], value: int) -> None:
    word.value = value  # ctypes cuts it to 64 bits
    write()


def _read_bytes(read: Callable[[], int], view: memoryview) -> int:
    read()
    return int.from_bytes(view, "little")


def _encoding(name: str) -> tuple[int, ...] | None:
    if name.startswith("msr:"):
        return (int(name[4:], 0),)
    found = _GENERIC.fullmatch(name)
    return None if found is None else tuple(int(text) for text in found.groups())
