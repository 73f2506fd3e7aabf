"""Damaged notes of static probes in a program of the guest: what is found is in the file, and its operands are values
or faults."""

import struct
from contextlib import suppress
from functools import cache
from pathlib import Path

from kinst.runtime.providers.operands import Operands
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.runtime.userspace.program_notes import ProgramNotes
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.errors import ImageError
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Finding, Kind
from tests.writers.elf import EM_X86_64, Part, elf64

_TEXT, _DATA = 0x40_1000, 0x40_3000
_OPERANDS = b"-4@%edi 8@-16(%rbp) 4@$5 2@symbol+8(%rip) 8@24(%rdi,%rdi,4) 8f@%xmm0 1@%fs:8(%rax)"


def _note(name: bytes, place: int, semaphore: int) -> bytes:
    descriptor = struct.pack("<QQQ", place, 0, semaphore) + b"\0".join((b"app", name, _OPERANDS)) + b"\0"
    return struct.pack("<III", 8, len(descriptor), 3) + b"stapsdt\0" + descriptor + bytes(-len(descriptor) % 4)


@cache
def _file() -> tuple[bytes, int]:
    """A program, and where its notes begin."""
    notes = _note(b"first", _TEXT, _DATA) + _note(b"second__one", _TEXT + 8, 0)
    parts = [Part(".text", _TEXT, b"\x90" * 64, 5), Part(".data", _DATA, bytes(16), 6)]
    whole = elf64(EM_X86_64, _TEXT, [*parts, Part(".note.stapsdt", _DATA + 0x1000, notes, 4)])
    return whole, whole.index(notes)


def _read(damage: Damage, folder: Path) -> None:
    whole, start = _file()
    path = folder / "program"
    path.write_bytes(damage.of(whole, (range(start, start + 200), range(len(whole)))))
    frame = TrapFrame([0] * len(AMD64.registers), lambda _at, _size: 0, lambda _a, _s, _v: None, lambda _n, _v: None)
    firing = Firing(frame, Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0))
    with suppress(ImageError):
        notes = ProgramNotes(path, "program", AMD64)
        for _, name, sites in notes.find("", ""):
            for site in sites:
                if path.read_bytes()[site.offset :][: len(site.code)] != site.code or not site.code:
                    raise Finding(f"{name} is not at {site.offset:#x}")
                argument = Operands(AMD64, notes.symbol).compile(site.operands)
                for number in range(len(site.operands)):
                    with suppress(Fault):
                        if not 0 <= argument(firing, number) < 1 << 64:
                            raise Finding(f"{site.operands[number]} is no word")


NOTED = Kind("noted", damages(1), _read)
