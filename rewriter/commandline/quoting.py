"""A shell's line -> its words; and a word -> its spelling in that line, so that the shell reads that word and nothing
else.

Names come from an image, and `zfoo$(reboot)` is one. zsh and fish quote completions themselves; bash inserts them as
they are. A word that no spelling makes harmless is not offered.
"""

import re
from typing import Final

from kinst.targets.values import dataclass

_BLANKS: Final = " \t\n"
_QUOTES: Final = "'\""
_ESCAPED_IN_DOUBLE: Final = '$`"\\'
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]", re.ASCII)  # stands for itself in bash, wherever it is in a word of ours
_SPECIAL_IN_DOUBLE: Final = re.compile(r'[$`"\\]')
_HISTORY: Final = "!"  # bash expands it in double quotes, and keeps a backslash before it


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a line up to the cursor. Bash does not replace `begun` of the last one, since it takes what follows
    for a word of its own: up to an open quote, or to the last character that ends a word to bash."""

    whole: tuple[str, ...]
    last: str  # the one at the cursor, perhaps empty
    begun: str
    quote: str  # the one that is open; empty: none


class _Reader:
    """Reads a line, a letter at a time."""

    def __init__(self, breaks: str) -> None:
        self._breaks = breaks
        self._whole: list[str] = []
        self._word: str | None = None  # None: between two words
        self._begun = self._before_quote = self._quote = ""
        self._is_escaped = False

    def read(self, letter: str) -> None:
        """Consume a character."""
        if self._is_escaped:
            self._is_escaped = False
            stays = self._quote and letter not in _ESCAPED_IN_DOUBLE
            self._add(f"\\{letter}" if stays else letter)
        elif letter == "\\" and self._quote != "'":
            self._is_escaped = True
            self._add("")
        elif self._quote:
            self._add("" if letter == self._quote else letter)
            self._quote = "" if letter == self._quote else self._quote
        else:
            self._read_bare(letter)

    def _read_bare(self, letter: str) -> None:
        if letter in _QUOTES:
            self._add("")
            self._quote, self._before_quote = letter, self._word or ""
        elif letter not in _BLANKS:
            self._add(letter)
            self._begun = (self._word or "") if letter in self._breaks else self._begun
        elif self._word is not None:
            self._whole.append(self._word)
            self._word, self._begun = None, ""

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def words(self) -> Words:
        """The words read so far."""
        begun = self._before_quote if self._quote else self._begun
        return Words(tuple(self._whole), self._word or "", begun, self._quote)


def words_of(text: str, breaks: str) -> Words:
    """Read a line as shells do, without expansions. `breaks`: what ends a word of bash's completion, unless it is
    quoted."""
    reader = _Reader(breaks)
    for letter in text:
        reader.read(letter)
    return reader.words()


def offered(word: str, shell: str, quote: str) -> str | None:
    """How a word is given to a shell whose line has an open quote before it, or none (empty).

    None: it cannot be, since it has invisible characters, which could move the cursor or end the line, or characters
    that no spelling preserves.
    """
    if not word.isprintable():
        return None
    return _in_bash(word, quote) if shell == "bash" else word


def _in_bash(word: str, quote: str) -> str | None:
    if not quote:
        return "".join(letter if _PLAIN.match(letter) else f"\\{letter}" for letter in word)
    if quote == '"' and _HISTORY in word:
        return None
    spelled = word.replace("'", "'\\''") if quote == "'" else _SPECIAL_IN_DOUBLE.sub(r"\\\g<0>", word)
    return spelled + quote if word.endswith(quote) else spelled  # readline ends a quote, but not after such a letter
