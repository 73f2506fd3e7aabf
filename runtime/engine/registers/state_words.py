"""A saved CPU state as bytes -> words in it by name, for state that the emulator's interface has no register for."""

import ctypes
from collections.abc import Callable, Mapping
from typing import Final

_CANARY: Final = 0xC0DE_0000_1357_9BDF


class StateWords:
    """Words at fixed places in a CPU's saved state, unsigned."""

    def __init__(
        self,
        places: Mapping[str, tuple[int, int]],
        address: int,
        save: Callable[[], None] | None = None,
        restore: Callable[[], None] | None = None,
    ) -> None:
        """`places`: name -> (offset, size) from `address` in host memory.

        For a CPU that is not saved, `save` copies its state there and `restore` copies it back.
        """
        self.names = places.keys()
        self._places = places
        self._address = address
        self._words: dict[str, ctypes.c_uint64 | ctypes.c_uint32] = {}
        self._save = save
        self._restore = restore

    def get(self, name: str) -> int:
        """The word's value."""
        if self._save is not None:
            self._save()
        return int(self._word(name).value)

    def set(self, name: str, value: int) -> None:
        """Change the word; the value is cut to its size."""
        if self._save is not None:  # the whole state goes back below: it must be of this moment
            self._save()
        self._word(name).value = value
        if self._restore is not None:
            self._restore()

    def _word(self, name: str) -> ctypes.c_uint64 | ctypes.c_uint32:
        word = self._words.get(name)
        if word is None:
            offset, size = self._places[name]
            word = (ctypes.c_uint64 if size == 8 else ctypes.c_uint32).from_address(self._address + offset)
            self._words[name] = word
        return word


def first_word(landmarks: Mapping[str, int], write: Callable[[str, int], None], snapshot: Callable[[], bytes]) -> int:
    """Where the structure that `landmarks` (register -> offset) describes begins. Raises LookupError if it differs.

    `write` gives each landmark a value of its own, which is then looked for in the `snapshot` of the state.
    """
    for number, name in enumerate(landmarks):
        write(name, _CANARY + number)
    content = snapshot()
    # Only if all landmarks agree on one beginning is the layout the one that the offsets were taken from. A word that
    # is a few bytes off would be another field, and writing it would corrupt the guest without a sign.
    places = [content.find((_CANARY + number).to_bytes(8, "little")) for number in range(len(landmarks))]
    starts = {place - offset for place, offset in zip(places, landmarks.values(), strict=True)}
    if len(starts) != 1 or min(places) < 0:
        raise LookupError("the CPU state of this version of Unicorn is laid out differently")
    return starts.pop()
