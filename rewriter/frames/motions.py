"""Code of trampolines -> what it does to the guest's stack pointer and registers, instruction by instruction.

Trampolines only move the stack pointer by constants, and copy registers to others or to the stack: these few forms are
told apart by their text. What any other instruction writes is gone. Both ends of a branch within a trampoline have the
same stack pointer and the same saved registers, so that the code can be read from its beginning to its end.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from importlib import import_module

import numpy as np

from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.frames.states import STILL, Motion
from kinst.rewriter.liveness.effects import effector
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass

_SPARE = 32  # bytes that an effector wants after the code


@dataclass(slots=True)
class Track:
    """Where the guest's values are: for each register, by its index in the trap frame, and for words of the stack, by
    their distance from the guest's stack pointer, whose value is there; None: no register's."""

    depth: int = 0
    registers: dict[int, int | None] = field(default_factory=dict)
    words: dict[int, int | None] = field(default_factory=dict)

    def value(self, register: int) -> int | None:
        """Whose value a register has."""
        return self.registers.get(register, register)

    def lower(self, size: int) -> None:
        """Move the stack pointer down by some bytes."""
        self.depth += size

    def store(self, register: int, place: int) -> None:
        """A register's value to the stack, at a distance from the pointer as it is now."""
        self.words[place - self.depth] = self.value(register)

    def load(self, register: int, place: int) -> None:
        """And back."""
        self.registers[register] = self.words.get(place - self.depth)

    def motion(self, numbers: Mapping[int, int]) -> Motion:
        """What an unwinder has to know; `numbers` are DWARF's, by index."""
        found = []
        for register in sorted(one for one, value in self.registers.items() if value != one and one in numbers):
            other = next((one for one, value in self.registers.items() if value == register and one in numbers), None)
            places = (at + self.depth for at, value in self.words.items() if value == register)
            place = None if other is not None else next((one for one in places if one >= 0), None)
            found.append((numbers[register], (None if other is None else numbers[other], place)))
        return Motion(self.depth, tuple(found))


# A form of an instruction's text, and what it does.
Form = tuple[re.Pattern[str], Callable[[Track, re.Match[str]], None]]


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """One machine's. Registers are DWARF's numbers: the program counter, if it has one.
    `forms` are tried in order. `partly`: registers, by index, that an instruction of another form writes in
    part."""

    pc: int | None
    code_factor: int
    return_register: int
    at_entry: tuple[int, tuple[tuple[int, int], ...]]  # offset of the CFA, and registers with their places
    forms: Sequence[Form]
    partly: Callable[[str], Iterator[int]]


def frame_facts(facts: ArchFacts) -> FrameFacts:
    """Those of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: FrameFacts = import_module(f"kinst.rewriter.frames.{facts.name}").FACTS
    return found


class Motions:
    """The motions of one machine's code."""

    def __init__(self, facts: ArchFacts) -> None:
        self._facts, self._own, self._effector = facts, frame_facts(facts), effector(facts)
        self._numbers = {index: number for number, index in enumerate(facts.unwind.dwarf_registers) if index >= 0}

    def of(self, code: bytes) -> tuple[tuple[int, Motion], ...]:
        """From which offset on which motion holds, for code that the guest's state enters."""
        track, found = Track(), [(0, STILL)]
        lines = disassemble(self._facts, code, 0)
        sizes = np.array([line.size for line in lines], np.uint8)
        offsets = np.array([line.address for line in lines], np.int64)
        padded = np.frombuffer(code + bytes(_SPARE), np.uint8)
        writes = self._effector.effects(padded, offsets, sizes).writes.tolist() if lines else []
        for line, written in zip(lines[:-1], writes, strict=False):
            self._step(track, line.text, written)
            motion = track.motion(self._numbers)
            if motion != found[-1][1]:
                found.append((line.address + line.size, motion))
        return tuple(found)

    def _step(self, track: Track, text: str, written: int) -> None:
        for form, act in self._own.forms:
            match = form.fullmatch(text)
            if match is not None:
                act(track, match)
                return
        for register in (*self._own.partly(text), *(one for one in range(32) if written >> one & 1)):
            track.registers[register] = None
