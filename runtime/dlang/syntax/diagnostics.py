"""An error of a D program -> the text that users see: dtrace(1)'s line, and the place in the program."""

from typing import Final

from kinst.runtime.dlang.syntax.errors import DError

_WIDTH: Final = 200  # of a line that is shown; longer ones are cut around the place
_BEFORE: Final = 80
_CUT: Final = "..."


def describe(error: DError, *, has_tags: bool, has_lines: bool = True) -> str:
    """`[TAG] "file", line N: message`, without the parts that are not known. `has_lines` is False for a program that is
    not a file (-n): dtrace prints no line number then."""
    tag = f"[{error.tag}] " if has_tags else ""
    message = _printable(error.message)
    if error.span is None:
        return tag + message
    file = f'"{error.span.file}", ' if error.span.file else ""
    line = f"line {error.span.line}: " if has_lines or file else ""
    return f"{tag}{file}{line}{message}"


def caret(error: DError) -> str:
    """The source line and, below it, carets under the place; empty if the place is not known. Tabs stay tabs in
    both."""
    span = error.span
    if span is None or not span.text.strip():
        return ""
    start = min(span.column - 1, len(span.text))
    cut = max(0, start - _BEFORE) if len(span.text) > _WIDTH else 0
    shown = span.text[cut : cut + _WIDTH].rstrip()
    front = _CUT if cut else ""
    back = _CUT if cut + _WIDTH < len(span.text) else ""
    padding = "".join("\t" if character == "\t" else " " for character in front + span.text[cut:start])
    length = max(1, min(span.length, len(front + shown) - len(padding)))
    return f"{front}{_printable(shown)}{back}\n{padding}{'^' * length}"


def _printable(text: str) -> str:
    """Text that is safe to print: a program's characters must neither control the terminal nor fail to be encoded."""
    return "".join(character if character in "\t\n" or character.isprintable() else "?" for character in text)
