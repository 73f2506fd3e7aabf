"""The text of a D program -> tokens, one declaration or clause at a time.

Outside clauses and declarations, words are probe descriptions, which may contain - * ? [ ] ! and more; inside, there
are C's tokens. So the lexer must know what an item is before it has read it: a declaration begins with a keyword or
with the name of a type, which the item before may have declared. That is why items are read one by one, each when the
parser has finished the one before (libdtrace's dt_lex.l does the same with states that yacc switches).
"""

import re
from collections.abc import Callable
from typing import Final

from kinst.runtime.dlang.syntax import control_lines, literals, tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.tokens import (
    AGGREGATION,
    DESCRIPTION,
    END,
    END_OF_PREDICATE,
    ERROR,
    LITERAL,
    NAME,
    TYPE_NAME,
    Token,
)
from kinst.runtime.dlang.syntax.words import BASIC_TYPES, DECLARATION_WORDS, KEYWORDS
from kinst.targets.probe import IN_PROGRAMS

_BLANKS: Final = r"[ \t\f\v\r]*+"
_LAYOUT: Final = r"(?P<newline>\n)|(?P<comment>/\*)"
# A module's name may contain dots: kernel.ko`symbol. In quotes it may contain anything: "kernel-amd64"`symbol.
_NAME: Final = (
    r"(?P<name>[A-Za-z_`][0-9A-Za-z_`]*+(?:\.[0-9A-Za-z_.]{0,60}`[A-Za-z_`][0-9A-Za-z_`]*+)?"
    r'|"[^"\\\n`]{1,255}"`[A-Za-z_][0-9A-Za-z_]*+)'
)
_FLOAT: Final = (
    r"(?P<float>(?:[0-9]++\.[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?[fFlL]?"
    r"|[0-9]++(?:[eE][-+]?[0-9]++[fFlL]?|[fF](?![0-9A-Za-z_])))"
)
_INTEGER: Final = rf"(?P<integer>{literals.INTEGER})"
_QUOTED: Final = (
    r'(?P<string>"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+")'
    r"|(?P<character>'[^'\\\n]*+(?:\\[^\n][^'\\\n]*+)*+')"
    r"|(?P<open>[\"'][^\n]*+)"
)
_OPERATOR: Final = (
    r"(?P<operator><<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||\^\^|==|!=|<=|>=|<<|>>|[-+*/%&^|]=|[-+*%&|^~!?:.,;=<>]|[(){}\[\]])"
)
_INSIDE: Final = re.compile(
    rf"{_BLANKS}(?:{_NAME}|{_FLOAT}|{_INTEGER}|{_LAYOUT}|{_OPERATOR}|(?P<slash>/)|{_QUOTED}"
    r"|(?P<aggregation>@(?:[A-Za-z_][0-9A-Za-z_]*+)?)"
    r"|(?P<macro>\$\$?(?:[0-9]++|[A-Za-z_`][0-9A-Za-z_`]*+))|(?P<continued>\\\r?\n)|(?P<other>.))",
    re.DOTALL,
)
# A program's path is the module of probes in it. Only there is a slash part of a description.
_IN_PROGRAM: Final = rf"(?:(?:{'|'.join(IN_PROGRAMS)}):/[-+$/0-9a-zA-Z_.~@?*\\\[\]!]*+(?=:))?"
_OUTSIDE: Final = re.compile(
    rf"{_BLANKS}(?:(?P<word>{_IN_PROGRAM}[-$:a-zA-Z_.?*\\\[\]!][-+$:0-9a-zA-Z_.`?*\\\[\]!]*+)|{_LAYOUT}|{_INTEGER}"
    r"|(?P<mark>[/,{])|(?P<other>.))",
    re.DOTALL,
)
_CONTROL: Final = re.compile(r"[\f\t\v ]*+#(!)?")
_AFTER_SLASH: Final = re.compile(r"[\f\n\r\t\v ]*+(?:[;{/]|\Z)")
_AROUND: Final = '"`'  # a module's name: quotes, or the mark of a symbol written twice, `kernel`symbol
_PLAIN_WORD: Final = re.compile(r"[0-9A-Za-z_`]+")

_OPEN: Final = {"(": 0, "[": 1, "{": 2}
_CLOSE: Final = {")": 0, "]": 1, "}": 2}


class Lexer:
    """Reads a text from its start. `pragmas` are those that were read since the list was last emptied. `on_pragma` is
    called for each pragma before the text after it is read: options such as defaultargs affect the rest of the text."""

    def __init__(
        self, text: str, *, macros: Macros, file: str, is_description: bool, on_pragma: Callable[[tree.Pragma], None]
    ) -> None:
        self._on_pragma = on_pragma
        self.pragmas: list[tree.Pragma] = []
        self._text = text
        self._macros = macros
        self._main_file = self._file = file
        self._is_description = is_description
        self._position = 0
        self._line = 1
        self._tokens: list[Token] = []
        self._open = [0, 0, 0]  # parentheses, brackets, braces
        self._begin_text()
        self._inside_handlers: dict[str, Callable[[re.Match[str], str], bool]] = {
            "aggregation": self._aggregation,
            "character": self._character,
            "comment": self._comment,
            "continued": self._newline,
            "float": self._float,
            "integer": self._integer,
            "macro": self._macro,
            "name": self._name,
            "newline": self._newline,
            "open": self._unclosed,
            "operator": self._operator,
            "other": self._other,
            "slash": self._slash,
            "string": self._string,
        }

    def item(self, is_type: Callable[[str], bool]) -> list[Token]:
        """The tokens of the next declaration or clause, and an END; at the end of the text only an END."""
        self._tokens = []
        self._open = [0, 0, 0]
        try:
            if self._position == 0:
                self._begin_line()
            self._outside(is_type)
        except DError as error:  # becomes a token: a syntax error in an earlier token must be reported first
            assert error.span is not None
            self._tokens.append(Token(ERROR, "", error.span, error))
        self._tokens.append(Token(END, "", self._span(self._position, 0)))
        return self._tokens

    # -- places

    def _begin_text(self) -> None:
        """Begin the line that starts at the current position."""
        end = self._text.find("\n", self._position)
        self._start = self._position
        self._line_text = self._text[self._start : end if end >= 0 else len(self._text)]

    def _span(self, position: int, length: int) -> Span:
        return Span(self._file, self._line, position - self._start + 1, length, self._line_text)

    def _newline(self, _match: re.Match[str], _text: str) -> bool:
        self._line += 1
        self._begin_text()
        self._begin_line()
        return False

    def _begin_line(self) -> None:
        """Read the control lines at the current position. A `#!` line is skipped."""
        while (match := _CONTROL.match(self._text, self._position)) is not None:
            line = self._line_text
            if match[1] is None:
                hash_end = match.end() - self._start
                found = control_lines.read(line[hash_end:], self._span(match.end() - 1, len(line) - hash_end + 1))
                self._control(found)
            self._position = self._start + len(line) + 1
            if self._position > len(self._text):
                self._position = len(self._text)
                return
            self._line += 1
            self._begin_text()

    def _control(self, found: tree.Pragma | control_lines.LineMarker | None) -> None:
        if isinstance(found, tree.Pragma):
            self._on_pragma(found)
            self.pragmas.append(found)
        elif found is not None:
            self._line = found.line - 1  # this line's newline is still to come
            if found.file is not None:  # a script that is piped through cpp is still the user's own file
                is_main = not found.file or found.file.startswith("/dev/fd/")
                self._file = self._main_file if is_main else found.file

    def _comment(self, match: re.Match[str], _text: str) -> bool:
        start = self._position
        end = self._text.find("*/", start)
        nested = self._text.find("/*", start, end + 1 if end >= 0 else len(self._text))
        stop = nested if nested >= 0 else end if end >= 0 else len(self._text)
        count = self._text.count("\n", start, stop)
        if count:
            self._line += count
            self._position = self._text.rfind("\n", start, stop) + 1
            self._begin_text()
        if nested >= 0:
            raise DError("D_SYNTAX", "/* encountered inside a comment", self._span(nested, 2))
        if end < 0:
            raise DError("D_SYNTAX", "end-of-file encountered before matching */", self._span(stop, 0))
        self._position = end + 2
        return False

    # -- outside clauses and declarations

    def _outside(self, is_type: Callable[[str], bool]) -> None:
        text, match_next = self._text, _OUTSIDE.match
        while (match := match_next(text, self._position)) is not None:
            group = match.lastgroup or ""
            begins_item = group in ("word", "integer") and bool(self._tokens) and self._tokens[-1].kind != ","
            if begins_item:
                return  # a description after a description: the parser decides whether that is right
            self._position = match.end()
            if group == "word":
                if self._word(match[group], match.start(group), is_type):
                    self._inside(";")
                    return
            elif group == "mark":
                mark = match[group]
                self._add(mark, mark, match.start(group))
                if mark != ",":
                    self._open[2] += mark == "{"
                    self._inside("}")
                    return
            else:
                self._inside_handlers[group](match, match[group])
        self._position = len(text)

    def _word(self, word: str, start: int, is_type: Callable[[str], bool]) -> bool:
        """Whether a declaration begins here. `int*x;` is a declaration and not a pattern."""
        if word in DECLARATION_WORDS:
            self._add(word, word, start)
            return True
        if not self._is_description and ":" not in word:
            name = word[: word.find("*", 1)] if "*" in word[1:] else word
            is_keyword = name in DECLARATION_WORDS
            if is_keyword or name.endswith(("`struct", "`union", "`enum")) or is_type(name):
                self._add(name if is_keyword else TYPE_NAME, name, start)
                self._position = start + len(name)
                return True
        span = self._span(start, len(word))
        self._tokens.append(Token(DESCRIPTION, self._macros.expand(word, span), span))
        return False

    # -- inside: each reader returns whether its token may be the last one

    def _inside(self, last: str) -> None:
        """Read up to the `;` or `}` that ends the item."""
        text, match_next, handlers = self._text, _INSIDE.match, self._inside_handlers
        opened = self._open
        while (match := match_next(text, self._position)) is not None:
            group = match.lastgroup or ""
            word = match[group]
            self._position = match.end()
            if handlers[group](match, word) and word == last and not opened[2]:
                return
        self._position = len(text)

    def _add(self, kind: str, text: str, start: int) -> None:
        self._tokens.append(
            Token(kind, text, Span(self._file, self._line, start - self._start + 1, len(text), self._line_text))
        )

    def _name(self, match: re.Match[str], text: str) -> bool:
        start = match.start("name")
        if text[0] in '"`':
            module, _, name = text.rpartition("`")
            self._tokens.append(Token(NAME, f"{module.strip(_AROUND)}`{name}", self._span(start, len(text))))
        else:
            self._add(text if text in KEYWORDS else NAME, text, start)
        return False

    def _operator(self, match: re.Match[str], text: str) -> bool:
        start = match.start("operator")
        if text in _OPEN:
            self._open[_OPEN[text]] += 1
        elif text in _CLOSE:
            kind = _CLOSE[text]
            self._open[kind] -= 1
            if self._open[kind] < 0:
                raise DError("D_SYNTAX", f"extra {text} in input stream", self._span(start, 1))
        self._add(text, text, start)
        return text in ";}"

    def _slash(self, match: re.Match[str], text: str) -> bool:
        """A slash. It ends a predicate if `{`, `;`, another `/` or the end of the text follows; otherwise it divides.
        This is libdtrace's rule: D's grammar is ambiguous here."""
        start = match.start("slash")
        if _AFTER_SLASH.match(self._text, self._position) is None:
            self._add("/", text, start)
            return False
        for bracket, count in zip(")]", self._open[:2], strict=True):
            if count:
                raise DError("D_SYNTAX", f"closing {bracket} expected in predicate before /", self._span(start, 1))
        self._add(END_OF_PREDICATE, text, start)
        return False

    def _literal(self, value: tree.Expression, text: str) -> bool:
        self._tokens.append(Token(LITERAL, text, value.span, value))
        return False

    def _integer(self, match: re.Match[str], text: str) -> bool:
        span = self._span(match.start("integer"), len(text))
        return self._literal(literals.integer(span, text), text)

    def _float(self, match: re.Match[str], text: str) -> bool:
        span = self._span(match.start("float"), len(text))
        raise DError("D_SYNTAX", "floating-point constants are not permitted", span)

    def _string(self, match: re.Match[str], text: str) -> bool:
        span = self._span(match.start("string"), len(text))
        return self._literal(literals.string(span, text[1:-1]), text)

    def _character(self, match: re.Match[str], text: str) -> bool:
        span = self._span(match.start("character"), len(text))
        return self._literal(literals.character(span, text), text)

    def _unclosed(self, match: re.Match[str], text: str) -> bool:
        span = self._span(match.start("open"), len(text))
        if match.end() == len(self._text):
            raise DError("D_SYNTAX", f'syntax error near "{text[0]}"', span)
        if text[0] == '"':
            raise DError("D_STR_NL", "newline encountered in string literal", span)
        raise DError("D_CHR_NL", "newline encountered in character constant", span)

    def _aggregation(self, match: re.Match[str], text: str) -> bool:
        self._add(AGGREGATION, text, match.start("aggregation"))
        return False

    def _other(self, match: re.Match[str], text: str) -> bool:
        raise DError("D_SYNTAX", f'syntax error near "{text}"', self._span(match.start("other"), 1))

    def _macro(self, match: re.Match[str], text: str) -> bool:
        span = self._span(match.start("macro"), len(text))
        is_string = text.startswith("$$")
        name = text[2:] if is_string else text[1:]
        if self._macros.is_live(text):
            self._add(NAME, text, match.start("macro"))
            return False
        if not name.isdecimal():
            value = self._macros.variable(name, written=text, span=span)
            shown = str(value & 0xFFFFFFFF)  # a uint_t in libdtrace
            return self._literal(literals.string(span, shown) if is_string else literals.number(span, value), shown)
        default = "" if is_string else "0"
        argument = self._macros.argument(name, written=text, default=default, span=span)
        if is_string:
            return self._literal(literals.string(span, argument), argument)
        return self._argument(argument, text, span)

    def _argument(self, argument: str, written: str, span: Span) -> bool:
        """A macro argument becomes the token that it looks like: a number with or without a sign, a name, or else a
        string (DTrace Guide, "Scripting": $1 is substituted as a token)."""
        sign = argument[:1] if argument[:1] in ("+", "-") else ""
        body = argument[len(sign) :]
        if re.fullmatch(literals.INTEGER, body):
            digits = body.rstrip("uUlL")
            literals.digits(digits, span, tag="D_MACRO_OFLOW", what=f"macro argument {written} ")
            number = literals.integer(span, body)
            return self._literal(tree.Unary(span, sign, number) if sign else number, argument)
        if _PLAIN_WORD.fullmatch(argument) and not argument[0].isdecimal():
            is_type = argument in BASIC_TYPES or argument == "string"
            self._tokens.append(Token(argument if is_type else NAME, argument, span))
            return False
        is_quoted = len(argument) > 1 and argument[0] == argument[-1] == '"'
        return self._literal(literals.string(span, argument[1:-1] if is_quoted else argument), argument)
