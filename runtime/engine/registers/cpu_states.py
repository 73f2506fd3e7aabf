"""Saved states of the CPU, and registers in them and in the running CPU: one state for each virtual CPU.

Unicorn's interface can read but not write some registers, and does not know some words of the state. Both are found in
a saved state, by experiment when the engine starts, and are written there. The layout is QEMU's CPUArchState, which no
header of Unicorn's declares and which differs from release to release.
"""

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from kinst.runtime.engine.registers.register_file import RegisterFile
from kinst.runtime.engine.registers.state_words import StateWords, first_word
from kinst.runtime.engine.windowed.access_place import AccessPlace
from kinst.targets.arch.facts import EngineFacts
from kinst.targets.errors import MachineError

_LANDMARK: Final = 0xC0DE_0000_2468_ACE0
_PRIVILEGES: Final = (0, 1, 3)  # U, S and M (Privileged Architecture 1.2)
_DEBUG_REGISTERS: Final = 8  # of amd64, in a state
_WANTED: Final = 0x80  # a value that every hidden register can hold: mip's machine timer bit, a hart's number


class CpuStates:
    """The saved states of one engine's CPU."""

    def __init__(
        self,
        library: ctypes.CDLL,
        handle: ctypes.c_void_p,
        number: Callable[[str], int],
        facts: EngineFacts,
    ) -> None:
        """`number` gives the emulator's number of a register."""
        self._library = library
        self._handle = handle
        self._number = number
        self._hidden = dict.fromkeys(facts.hidden, 0)  # offset in a saved state
        self._facts = facts
        self._first_word = 0
        self._files: dict[int, RegisterFile] = {}
        self._pointers: range | None = None
        self._size: int = library.uc_context_size(handle)
        # Live registers are made twice: the searches need them to write what they look for, and the words' place.
        self._scratch = self.save()
        self.live = self._register_file(handle, "uc_reg_read", "uc_reg_write")
        self._hidden = {name: self._find_hidden(name) for name in facts.hidden}
        if facts.words:
            self._first_word = self._find_words(facts.landmarks)
            self.live = self._register_file(handle, "uc_reg_read", "uc_reg_write")

    def save(self) -> ctypes.c_void_p:
        """A new copy of the CPU's state."""
        context = ctypes.c_void_p()
        self._library.uc_context_alloc(self._handle, ctypes.byref(context))
        self.save_to(context)
        return context

    def save_to(self, context: ctypes.c_void_p) -> None:
        """Copy the CPU's state over an older copy."""
        self._library.uc_context_save(self._handle, context)

    def restore(self, context: ctypes.c_void_p) -> None:
        """Continue from a copy."""
        self._library.uc_context_restore(self._handle, context)

    def free(self, context: ctypes.c_void_p) -> None:
        """Free a copy whose registers nobody uses."""
        self._library.uc_context_free(context)

    def forget(self, context: ctypes.c_void_p) -> None:
        """Free a copy together with its registers, which nobody uses any more."""
        self._files.pop(context.value or 0, None)
        self.free(context)

    def content(self, context: ctypes.c_void_p) -> bytes:
        """A copy of the CPU's state as bytes, which any engine of this release for the machine can continue from.

        Raises:
            MachineError: it has addresses of this process.
        """
        content = ctypes.string_at((context.value or 0) + self._head(context), self._size - self._head(context))
        if any(content[place] for place in self._breakpoints()):
            raise MachineError("the guest has set a hardware breakpoint, which is in this process only")
        return self._facts.state.without_transient(content)

    def problem(self, content: bytes, new: bytes) -> str | None:
        """What a state from a file says that no guest can have brought about, in one line; None: nothing. `new`: the
        same CPU's when the machine was just made."""
        if len(content) != len(new):
            return f"its state has {len(content):,} bytes, and {len(new):,} here"
        return self._facts.state.problem(content, new)

    def put(self, context: ctypes.c_void_p, content: bytes) -> None:
        """Make a copy of the CPU's state what `content` gave. Raises MachineError: that is of another release."""
        head = self._head(context)
        if len(content) != self._size - head:
            raise MachineError(f"a CPU's state has {len(content):,} bytes, and {self._size - head:,} here")
        if any(content[place] for place in self._breakpoints()):
            raise MachineError("a CPU's state has addresses of another process")
        ctypes.memmove((context.value or 0) + head, content, len(content))
        # The emulator chooses a TLB by it, without a check.
        name = self._facts.privilege
        if name is not None and self.registers_of(context).get(name) not in _PRIVILEGES:
            raise MachineError(f"a CPU's state has a {name} that there is not")

    def _head(self, context: ctypes.c_void_p) -> int:
        """The bytes of Unicorn's own before the state: its struct uc_context begins with the size of the rest."""
        return self._size - ctypes.c_uint64.from_address(context.value or 0).value

    def _breakpoints(self) -> range:
        """Where a state has pointers to QEMU's breakpoints, as bytes: behind amd64's debug registers."""
        if not self._facts.debug_registers:
            return range(0)
        if self._pointers is None:
            first, count = self._facts.debug_registers[0], len(self._facts.debug_registers)
            original, scratch = self.save(), self.save()
            try:
                self.live.set(first, _LANDMARK)
                self.save_to(scratch)
                content = ctypes.string_at(scratch.value or 0, self._size)
                start = content.index(_LANDMARK.to_bytes(8, "little")) - self._head(scratch) + _DEBUG_REGISTERS * 8
            finally:
                self.restore(original)
                self.free(original)
                self.free(scratch)
            self._pointers = range(start, start + count * 8)
        return self._pointers

    def registers_of(self, context: ctypes.c_void_p) -> RegisterFile:
        """The registers in a copy. System registers cannot be used safely there: their side effects need a CPU."""
        key = context.value or 0
        if key not in self._files:
            self._files[key] = self._register_file(context, "uc_context_reg_read", "uc_context_reg_write")
        return self._files[key]

    def access_place(self) -> AccessPlace:
        """What restores the running CPU's state in the middle of a block. Between two runs."""
        return AccessPlace(self._library, self._handle, self._facts.library_suffix)

    def _register_file(self, handle: ctypes.c_void_p, read: str, write: str) -> RegisterFile:
        store = partial(self._set_hidden_live) if handle is self._handle else partial(self._set_hidden, handle)
        return RegisterFile(
            self._number,
            partial(getattr(self._library, read), handle),
            partial(getattr(self._library, write), handle),
            dict.fromkeys(self._hidden, store),
            self._words_of(handle),
            self._facts.system_registers,
        )

    # -- hidden registers ---------------------------------------------------------------------------------------------

    def _set_hidden(self, context: ctypes.c_void_p, name: str, value: int) -> None:
        ctypes.c_uint64.from_address((context.value or 0) + self._hidden[name]).value = value

    def _set_hidden_live(self, name: str, value: int) -> None:
        self.save_to(self._scratch)
        self._set_hidden(self._scratch, name, value)
        self.restore(self._scratch)
        # Also by the interface: to write those bits of mip that it can write makes Unicorn check for interrupts.
        word = ctypes.c_uint64(value)
        self._library.uc_reg_write(self._handle, ctypes.c_int(self._number(name)), ctypes.byref(word))

    def _find_hidden(self, name: str) -> int:
        """The offset of the word in a saved state that is the register's value."""
        # One word of a copy is changed at a time, and what the interface reads then says whether it was the register.
        # The first words are general registers, which are not it.
        original = self.save()
        content = ctypes.string_at(original.value or 0, self._size)
        place = self._scratch.value or 0
        try:
            for offset in range(64, self._size - 8, 8):
                ctypes.memmove(place, content, self._size)
                ctypes.c_uint64.from_address(place + offset).value = _WANTED
                self.restore(self._scratch)
                if self.live.get(name) == _WANTED:
                    return offset
        finally:
            self.restore(original)
            self._library.uc_context_free(original)
        raise LookupError(f"{name}: not found in the CPU state of this version of Unicorn")

    # -- words without a register -------------------------------------------------------------------------------------

    def _words_of(self, handle: ctypes.c_void_p) -> StateWords:
        if handle is not self._handle:
            return StateWords(self._facts.words, (handle.value or 0) + self._first_word)
        return StateWords(
            self._facts.words,
            (self._scratch.value or 0) + self._first_word,
            partial(self.save_to, self._scratch),
            partial(self.restore, self._scratch),
        )

    def _find_words(self, landmarks: Mapping[str, int]) -> int:
        """The offset in a saved state of the structure with the words."""
        original = self.save()

        def snapshot() -> bytes:
            self.save_to(self._scratch)
            return ctypes.string_at(self._scratch.value or 0, self._size)

        try:
            return first_word(landmarks, self.live.set, snapshot)
        finally:
            self.restore(original)
            self._library.uc_context_free(original)
