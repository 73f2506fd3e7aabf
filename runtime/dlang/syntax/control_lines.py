"""A control line -> a pragma, a new line number, or nothing: `#pragma`, `#line`, `# 1 "file"`, `#error`, `#ident`."""

import re
from enum import Enum
from typing import Final, NoReturn

from kinst.runtime.dlang.syntax import literals, tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.targets.nearest import nearest
from kinst.targets.values import dataclass

# libdtrace's lexer has a state of its own for control lines: only blanks end a word, and there are neither comments nor
# continued lines. Lines of DOS files end with \r.
_PIECE: Final = re.compile(r'[\f\t\v\r ]+|("(?:[^"\\]|\\.)*+"?)|([^\f\t\v " ]+)', re.DOTALL)
_OF_CPP: Final = ("define", "elif", "else", "endif", "if", "ifdef", "ifndef", "include", "undef")  # what -C is for
_INTEGER: Final = re.compile(literals.INTEGER)


class Kind(Enum):
    """The kind of a piece of a control line."""

    WORD = "word"
    STRING = "string"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a control line; a string has lost its quotes."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class LineMarker:
    """The next line has this number, from 1. `file` is None if the file stays the same."""

    line: int
    file: str | None


# What must follow the word after #pragma D, and how the error describes it.
_SHAPES: Final = {
    "attributes": ((Kind.WORD, Kind.WORD), "<attributes> <ident>"),
    "binding": ((Kind.STRING, Kind.WORD), '"version" <ident>'),
    "depends_on": ((Kind.WORD, Kind.WORD), "<class> <name>"),
    "option": ((Kind.WORD,), "<option>=<val>"),
}


def _pieces(line: str, span: Span) -> list[Piece]:
    found = []
    for match in _PIECE.finditer(line):
        quoted, word = match.groups()
        if quoted is not None:
            if len(quoted) < 2 or quoted[-1] != '"':
                raise DError("D_STR_NL", "newline encountered in string literal", span)
            found.append(Piece(Kind.STRING, literals.unescape(quoted[1:-1]).decode("utf-8", "surrogateescape")))
        elif word is not None and _INTEGER.fullmatch(word.rstrip("\r")):
            literals.integer(span, word.rstrip("\r"))
            found.append(Piece(Kind.INTEGER, word.rstrip("\r")))
        elif word is not None and word.rstrip("\r"):
            found.append(Piece(Kind.WORD, word.rstrip("\r")))
    return found


def _malformed(name: str, shape: str, span: Span) -> NoReturn:
    raise DError("D_PRAGMA_MALFORM", f"malformed #{name} {shape}", span)


def _line_marker(pieces: list[Piece], span: Span) -> LineMarker:
    kinds = tuple(piece.kind for piece in pieces[:3])
    if kinds != (Kind.INTEGER, Kind.STRING, Kind.INTEGER)[: len(kinds)] or not kinds:
        _malformed("line", '<line> [ ["file"] state ]', span)
    line = literals.integer(span, pieces[0].text).value
    return LineMarker(line, pieces[1].text if len(pieces) > 1 else None)


def _d_pragma(pieces: list[Piece], span: Span) -> tree.Pragma:
    name, rest = pieces[0].text, pieces[1:]
    if name not in _SHAPES:
        raise DError("D_PRAGMA_INVAL", f"invalid D pragma: {name}{nearest(name, _SHAPES)}", span)
    kinds, shape = _SHAPES[name]
    if tuple(piece.kind for piece in rest[: len(kinds)]) != kinds:
        _malformed(f"pragma {name}", shape, span)
    if name == "option" and len(rest) > 1:
        raise DError("D_PRAGMA_MALFORM", f"superfluous arguments specified for #pragma {name}", span)
    return tree.Pragma(span, name, tuple(piece.text for piece in rest))


def _pragma(pieces: list[Piece], span: Span) -> tree.Pragma | LineMarker | None:
    """The rest of a line after #pragma. Like C, D ignores a pragma that it does not know, unless it begins with D."""
    if not pieces:
        return None
    if pieces[0].kind is Kind.INTEGER:
        return _line_marker(pieces, span)
    if pieces[0].kind is not Kind.WORD:
        raise DError("D_PRAGCTL_INVAL", "invalid control directive", span)
    if pieces[0].text != "D":
        return _directive(pieces, span)
    if len(pieces) > 1 and pieces[1].kind is Kind.WORD and pieces[1].text not in ("error", "ident", "line"):
        return _d_pragma(pieces[1:], span)
    return _pragma(pieces[1:], span)


def _directive(pieces: list[Piece], span: Span) -> LineMarker | None:
    match pieces[0].text:
        case "error":
            words = "".join(f"{piece.text} " for piece in pieces[1:] if piece.kind is not Kind.INTEGER)
            raise DError("D_PRAGERR", f"#error: {words}", span)
        case "line":
            return _line_marker(pieces[1:], span)
    return None


def read(line: str, span: Span) -> tree.Pragma | LineMarker | None:
    """Parse a control line. `line` is the text after the `#`, without the newline. Raises DError: D_PRAGMA_INVAL,
    D_PRAGMA_MALFORM, D_PRAGCTL_INVAL, D_PRAGERR, D_STR_NL and those of integers."""
    pieces = _pieces(line, span)
    if not pieces:
        return None
    first = pieces[0]
    if first.kind is Kind.WORD and first.text == "pragma":
        return _pragma(pieces[1:], span)
    if first.kind is Kind.INTEGER:
        return _line_marker(pieces, span)
    if first.kind is Kind.WORD and first.text in ("error", "ident", "line"):
        return _directive(pieces, span)
    shown = f": #{first.text}" if first.kind is Kind.WORD else ""
    hint = " (-C runs the C preprocessor first)" if first.text in _OF_CPP else ""
    raise DError("D_PRAGCTL_INVAL", f"invalid control directive{shown}{hint}", span)
