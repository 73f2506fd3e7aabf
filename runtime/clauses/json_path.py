"""json(): the value at a path in a JSON text, as text. Nothing after the value is read.

Strings keep their escapes; numbers, true, false and null come back as written, nested objects and arrays in full. The
result is NULL if there is no such value, or if the text before it is not JSON.
"""

import re
from typing import Final

from kinst.runtime.clauses.text_functions import NULL, strtoll

# Escapes stay as they are; \u must have four digits.
_STRING: Final = re.compile(rb'"((?:[^"\\]|\\[^u]|\\u[0-9A-Fa-f]{4})*+)"', re.DOTALL)
_NUMBER: Final = re.compile(rb"[-0-9][0-9]*(\.[0-9]*)?([eE][-+0-9]*)?")
_WORD: Final = re.compile(rb"[a-z]+")
_SPACE: Final = re.compile(rb"[ \t-\r]*")
_NESTING: Final = re.compile(rb'["\[\]{}]')
_PATH: Final = re.compile(rb"[.\[]")


class _Missing(Exception):
    """There is no such value, or the text is not JSON."""


def select(text: bytes, path: bytes) -> bytes | int:
    """The value at `path`: members and array indexes, as in "a.b[2].c" or "[0].x"."""
    keys = _PATH.split(path.removeprefix(b"[").replace(b"]", b""))
    reader = _Reader(text)
    try:
        opening = reader.take(b"{[")
        for depth, key in enumerate(keys):
            is_last = depth == len(keys) - 1
            if opening == b"{":
                reader.find_member(key)
            else:
                reader.find_element(strtoll(key))
            if is_last:
                return reader.value()
            opening = reader.take(b"{[")
    except _Missing:
        pass
    return NULL


class _Reader:
    """Reads a JSON text from left to right. Every method raises _Missing."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0

    def take(self, allowed: bytes) -> bytes:
        """The next character that is not blank, which must be one of `allowed`."""
        self._skip_blanks()
        character = self._text[self._at : self._at + 1]
        if not character or character not in allowed:
            raise _Missing
        self._at += 1
        return character

    def find_member(self, name: bytes) -> None:
        """Advance to the value of this member of the object that begins here."""
        while True:
            self._skip_blanks()
            key = self._string()
            self.take(b":")
            if key == name:
                return
            self.value()
            self.take(b",")

    def find_element(self, number: int) -> None:
        """Advance to this element, counted from 0, of the array that begins here."""
        if number < 0:
            raise _Missing
        for _ in range(number):
            self.value()
            self.take(b",")

    def value(self) -> bytes:
        """The value that begins here."""
        self._skip_blanks()
        character = self._text[self._at : self._at + 1]
        if character in (b"{", b"["):
            return self._nested()
        if character == b'"':
            return self._string()
        return self._word() if character.islower() else self._number()

    def _skip_blanks(self) -> None:
        blanks = _SPACE.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at

    def _string(self) -> bytes:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise _Missing
        self._at = found.end()
        return found[1]

    def _word(self) -> bytes:
        found = _WORD.match(self._text, self._at)
        if found is None or found[0] not in (b"true", b"false", b"null") or found.end() == len(self._text):
            raise _Missing
        self._at = found.end()
        return found[0]

    def _number(self) -> bytes:
        found = _NUMBER.match(self._text, self._at)
        if found is None or found.end() == len(self._text):
            raise _Missing
        fraction, exponent = found.groups()
        # A sign is allowed in an exponent only, and there are no hexadecimal numbers.
        wrong = b"" if exponent is not None else b"+-" if fraction is not None else b"+-xX"
        if self._text[found.end()] in wrong:
            raise _Missing
        self._at = found.end()
        return found[0]

    def _nested(self) -> bytes:
        """An object or array in full. Brackets and braces are counted separately, so that `[{]}` passes, as in
        DTrace."""
        begin = self._at
        depths = {b"[": 0, b"{": 0}
        while True:
            found = _NESTING.search(self._text, self._at)
            if found is None:
                raise _Missing
            self._at = found.start()
            if found[0] == b'"':
                self._string()
                continue
            self._at = found.end()
            kind = b"[" if found[0] in b"[]" else b"{"
            depths[kind] += 1 if found[0] == kind else -1
            if depths[kind] < 0:
                raise _Missing
            if not any(depths.values()):
                return self._text[begin : self._at]
