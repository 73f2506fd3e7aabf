"""An input and others -> an input that differs a little: stacked small changes, splices, words of a dictionary.

These are the changes of AFL's havoc stage. No kept package has them for an interpreter of ours: atheris needs clang,
and python-afl an AFL that is installed.
"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_INTERESTING: Final = (
    *(bytes([one]) for one in (0, 1, 16, 32, 64, 100, 127, 128, 255)),
    *(one.to_bytes(size, order) for size in (2, 4) for order in ("little", "big") for one in (0, 1, 255, 256, 4096)),
    *((1 << 8 * size - 1).to_bytes(size, order) for size in (2, 4, 8) for order in ("little", "big")),
    *(((1 << 8 * size - 1) - 1).to_bytes(size, order) for size in (2, 4, 8) for order in ("little", "big")),
    *(b"\xff" * size for size in (2, 4, 8)),
)
_DIGITS: Final = re.compile(rb"[0-9]{1,20}")
_MOST_CHANGES: Final = 5  # as a power of two
_LARGEST_STEP: Final = 35  # that is added to a number
_LARGEST_BLOCK: Final = 64  # bytes


class Mutator:
    """Changes inputs. What it does follows from the seed."""

    def __init__(self, draw: Random, words: Sequence[Sequence[bytes]], largest: int) -> None:
        """`words` are dictionaries, used alike, `largest` the size that no input exceeds."""
        self._draw, self._largest, self._words = draw, largest, [one for one in words if one]
        self._changes: tuple[Callable[[bytearray], None], ...] = (
            *(self._flip_bit, self._set_byte, self._step, self._interesting, self._delete, self._duplicate),
            *(self._insert, self._overwrite, self._copy, self._truncate, self._decimal),
            *((self._word, self._word) if self._words else ()),
        )

    def mutated(self, data: bytes, others: Sequence[bytes]) -> bytes:
        """An input made from one of a corpus, and now and then from the beginning of one and the end of another."""
        draw = self._draw
        content = bytearray(data)
        if len(others) > 1 and draw.random() < 0.15:
            other = draw.choice(others)
            content[draw.randrange(len(content) + 1) :] = other[draw.randrange(len(other) + 1) :]
        for _ in range(1 << min(draw.randrange(_MOST_CHANGES), draw.randrange(_MOST_CHANGES))):
            draw.choice(self._changes)(content)
        return bytes(content[: self._largest])

    def _place(self, content: bytearray) -> int:
        return self._draw.randrange(len(content))

    def _flip_bit(self, content: bytearray) -> None:
        if content:
            content[self._place(content)] ^= 1 << self._draw.randrange(8)

    def _set_byte(self, content: bytearray) -> None:
        if content:
            content[self._place(content)] = self._draw.randrange(256)

    def _step(self, content: bytearray) -> None:
        """Add a little to a number, or subtract it."""
        draw, size = self._draw, self._draw.choice((1, 2, 4, 8))
        if len(content) < size:
            return
        at, order = draw.randrange(len(content) - size + 1), "little" if draw.random() < 0.5 else "big"
        value = int.from_bytes(content[at : at + size], order)  # type: ignore[arg-type]
        value += draw.randrange(-_LARGEST_STEP, _LARGEST_STEP + 1)
        content[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, order)  # type: ignore[arg-type]

    def _interesting(self, content: bytearray) -> None:
        self._put(content, self._draw.choice(_INTERESTING))

    def _word(self, content: bytearray) -> None:
        word = self._draw.choice(self._draw.choice(self._words))
        if self._draw.random() < 0.5:
            self._put(content, word)
        else:
            at = self._draw.randrange(len(content) + 1)
            content[at:at] = word

    def _put(self, content: bytearray, piece: bytes) -> None:
        """Overwrite what is at a place, which may be beyond the end."""
        if not content:
            content += piece
            return
        at = self._place(content)
        content[at : at + len(piece)] = piece

    def _block(self, content: bytearray) -> tuple[int, int]:
        start = self._place(content)
        return start, min(len(content), start + self._draw.randrange(1, _LARGEST_BLOCK + 1))

    def _delete(self, content: bytearray) -> None:
        if len(content) > 1:
            start, end = self._block(content)
            del content[start:end]

    def _decimal(self, content: bytearray) -> None:
        """Change a number in digits: to its neighbour, its square, or one of any size."""
        numbers = list(_DIGITS.finditer(content))
        if not numbers:
            return
        found, draw = self._draw.choice(numbers), self._draw
        value = int(found[0])
        values = value + 1, max(0, value - 1), value * value, value * 10, (1 << draw.randrange(65)) - draw.randrange(2)
        content[found.start() : found.end()] = str(draw.choice(values)).encode()

    def _truncate(self, content: bytearray) -> None:
        if len(content) > 1:
            del content[self._draw.randrange(1, len(content)) :]

    def _duplicate(self, content: bytearray) -> None:
        if content:
            start, end = self._block(content)
            content[end:end] = content[start:end]

    def _copy(self, content: bytearray) -> None:
        if content:
            start, end = self._block(content)
            self._put(content, bytes(content[start:end]))

    def _insert(self, content: bytearray) -> None:
        at = self._draw.randrange(len(content) + 1)
        content[at:at] = self._draw.randbytes(self._draw.randrange(1, 9))

    def _overwrite(self, content: bytearray) -> None:
        self._put(content, self._draw.randbytes(self._draw.randrange(1, 9)))
