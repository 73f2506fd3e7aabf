"""Errors as users see them."""

from kinst.runtime.dlang.syntax.diagnostics import caret, describe
from kinst.runtime.dlang.syntax.errors import DError, Span
from tests.runtime.dlang.syntax.reading import error_of


def test_the_first_line_is_dtraces() -> None:
    error = error_of("\n\nBEGIN { a b; }\n")
    assert describe(error, has_tags=False) == 'line 3: syntax error near "b"'
    assert describe(error, has_tags=True) == '[D_SYNTAX] line 3: syntax error near "b"'
    assert describe(error, has_tags=True, has_lines=False) == '[D_SYNTAX] syntax error near "b"'


def test_an_error_of_an_included_file() -> None:
    error = error_of('# 7 "x.h"\nBEGIN { a b; }\n')
    assert describe(error, has_tags=False) == '"x.h", line 7: syntax error near "b"'
    assert describe(error, has_tags=False, has_lines=False) == '"x.h", line 7: syntax error near "b"'


def test_an_error_of_the_whole_program() -> None:
    error = error_of("")
    assert describe(error, has_tags=True) == "[D_EMPTY] line 1: empty D program translation unit"
    assert caret(error) == ""


def test_a_message_of_several_lines() -> None:
    error = DError("D_PROTO_ARG", "one\n\ttwo\n\tthree", Span("", 2, 1, 1, "x"))
    assert describe(error, has_tags=False) == "line 2: one\n\ttwo\n\tthree"


def test_carets_stand_below_the_place() -> None:
    assert caret(error_of("BEGIN { trace(a) bcd; }")) == "BEGIN { trace(a) bcd; }\n                 ^^^"
    assert caret(error_of("BEGIN {\n\t\ttrace(a) b;\n}")) == "\t\ttrace(a) b;\n\t\t         ^"


def test_the_end_of_a_program_has_a_place_too() -> None:
    assert caret(error_of("BEGIN { a")) == "BEGIN { a\n         ^"
    assert caret(error_of("BEGIN { a\n")) == ""


def test_long_lines_are_cut_around_the_place() -> None:
    line, marks = caret(error_of("BEGIN { " + "a; " * 1000 + "b c; " + "d; " * 1000 + "}")).split("\n")
    assert len(line) < 220
    assert line.startswith("...")
    assert line.endswith("...")
    assert line[marks.index("^")] == "c"


def test_a_span_beyond_the_line_shows_one_caret() -> None:
    assert caret(DError("D_SYNTAX", "x", Span("", 1, 50, 7, "short"))) == "short\n     ^"


def test_control_characters_stay_inside() -> None:
    error = error_of("BEGIN { \x1b[2J \udcff }")
    assert describe(error, has_tags=False) == 'line 1: syntax error near "?"'
    assert caret(error) == "BEGIN { ?[2J ? }\n        ^"


def test_long_words_are_cut() -> None:
    assert len(describe(error_of("BEGIN { a " + "b" * 100_000 + " }"), has_tags=False)) < 150
