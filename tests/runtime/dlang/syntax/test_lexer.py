"""Constants, comments, control lines and macros: what the characters of a program mean."""

import os

import pytest

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.macros import Macros, check_used
from tests.runtime.dlang.syntax.reading import clause, error_of, expression, read


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("0", 0, "int"),
        ("2147483647", 2**31 - 1, "int"),
        ("2147483648", 2**31, "long"),
        ("4294967295", 2**32 - 1, "long"),
        ("0xffffffff", 2**32 - 1, "unsigned int"),
        ("0x7fffffff", 2**31 - 1, "int"),
        ("037777777777", 2**32 - 1, "unsigned int"),
        ("0xffffffffffffffff", 2**64 - 1, "unsigned long"),
        ("9223372036854775807", 2**63 - 1, "long"),
        ("1u", 1, "unsigned int"),
        ("4294967296U", 2**32, "unsigned long"),
        ("1L", 1, "long"),
        ("1uL", 1, "unsigned long"),
        ("18446744073709551615ul", 2**64 - 1, "unsigned long"),
        ("1ll", 1, "long long"),
        ("0x1LL", 1, "long long"),
        ("1ULL", 1, "unsigned long long"),
        ("'a'", 97, "int"),
        ("'ab'", 0x6162, "int"),
        (r"'\n'", 10, "int"),
        (r"'\0'", 0, "int"),
        (r"'\''", 0x5C27, "int"),  # libdtrace's lexer knows no such escape: the backslash stays
        (r"'\c'", 23651, "int"),
        (r"'\xz'", 0x7A, "int"),  # a NUL, and z
        (r"'\x41'", 0x41, "int"),
        (r"'\377'", 255, "int"),
        ("'abcdefgh'", 0x6162636465666768, "long"),
    ],
)
def test_integers_have_the_type_that_c_gives_them(text: str, value: int, kind: str) -> None:
    literal = expression(text)
    assert isinstance(literal, tree.IntegerLiteral)
    assert (literal.value, literal.type_name, literal.text) == (value, kind, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('""', b""),
        ('"plain"', b"plain"),
        (r'"\a\b\f\n\r\t\v\"\\\'"', b"\a\b\f\n\r\t\v\"\\\\'"),
        (r'"\101\x42"', b"AB"),
        (r'"cut\0off"', b"cut"),
        ('"ünï"', "ünï".encode()),
        ('"/* no comment */"', b"/* no comment */"),
        ('"%d\\n"', b"%d\n"),
    ],
)
def test_strings(text: str, value: bytes) -> None:
    assert expression(text) == tree.StringLiteral(expression(text).span, value)


def test_a_byte_that_is_no_utf8_stays_what_it_was() -> None:
    literal = expression(b'"\xff\xc3"'.decode("utf-8", "surrogateescape"))
    assert isinstance(literal, tree.StringLiteral)
    assert literal.value == b"\xff\xc3"


@pytest.mark.parametrize(
    ("text", "tag", "message"),
    [
        ("BEGIN { 08; }", "D_INT_DIGIT", "constant 08 contains invalid digit 8"),
        ("BEGIN { 0129; }", "D_INT_DIGIT", "constant 0129 contains invalid digit 9"),
        ("BEGIN { 12x; }", "D_SYNTAX", 'syntax error near "x"'),
        ("BEGIN { 0x; }", "D_SYNTAX", 'syntax error near "x"'),
        ("BEGIN { 0x12345678123456780; }", "D_INT_OFLOW", "constant 0x12345678123456780 results in integer overflow"),
        ("BEGIN { 9223372036854775808; }", "D_INT_OFLOW", "cannot be represented"),
        ("BEGIN { 18446744073709551616u; }", "D_INT_OFLOW", "results in integer overflow"),
        ("BEGIN { " + "9" * 100_000 + "; }", "D_INT_OFLOW", "results in integer overflow"),
        ("BEGIN { 1.5; }", "D_SYNTAX", "floating-point constants are not permitted"),
        ("BEGIN { .5; }", "D_SYNTAX", "floating-point constants are not permitted"),
        ("BEGIN { 1e5; }", "D_SYNTAX", "floating-point constants are not permitted"),
        ("BEGIN { ''; }", "D_CHR_NULL", "empty character constant"),
        ("BEGIN { 'abcdefghi'; }", "D_CHR_OFLOW", "character constant is too long"),
        ("BEGIN { 'a\n'; }", "D_CHR_NL", "newline encountered in character constant"),
        ('BEGIN { "a\n"; }', "D_STR_NL", "newline encountered in string literal"),
        ('BEGIN { "a', "D_SYNTAX", r'syntax error near """'),
        ("BEGIN { /* a /* b */ }", "D_SYNTAX", "/* encountered inside a comment"),
        ("/* a /*/ b", "D_SYNTAX", "/* encountered inside a comment"),
        ("BEGIN { /* a", "D_SYNTAX", "end-of-file encountered before matching */"),
        ("BEGIN { // no comment\n }", "D_SYNTAX", 'syntax error near "/"'),
        ("BEGIN { x # y }", "D_SYNTAX", 'syntax error near "#"'),
        ("BEGIN { ) }", "D_SYNTAX", "extra ) in input stream"),
        ("BEGIN { ] }", "D_SYNTAX", "extra ] in input stream"),
        ("BEGIN /(a/ { }", "D_SYNTAX", "closing ) expected in predicate before /"),
        ("BEGIN /a[1/ { }", "D_SYNTAX", "closing ] expected in predicate before /"),
        ("BEGIN { };", "D_SYNTAX", 'syntax error near ";"'),
        ("BEGIN { \x01 }", "D_SYNTAX", "syntax error near"),
    ],
)
def test_what_cannot_be_read(text: str, tag: str, message: str) -> None:
    error = error_of(text)
    assert error.tag == tag
    assert message in error.message
    assert error.span is not None


def test_the_first_thing_that_is_wrong_is_told() -> None:
    assert error_of("BEGIN { a b; 08; }").message == 'syntax error near "b"'
    assert error_of("BEGIN { 08; a b; }").tag == "D_INT_DIGIT"


def test_places_are_lines_and_columns_of_the_text() -> None:
    span = error_of("BEGIN\n{\n\ttrace(1);\n\t/* two\n\tlines */ x y;\n}\n").span
    assert span is not None
    assert (span.line, span.column, span.length, span.text) == (5, 13, 1, "\tlines */ x y;")


@pytest.mark.parametrize("predicate", ["a / b", "a / b > 2 / c", "a /* c */ / b", "a /\nb"])
def test_a_slash_divides_unless_a_body_follows(predicate: str) -> None:
    node = clause(f"BEGIN /{predicate}/ {{ }}").predicate
    assert isinstance(node, tree.Binary)


@pytest.mark.parametrize("text", ["BEGIN/a/{}", "BEGIN /a/\n\n{}", "BEGIN /a/ /* why */ {}", "BEGIN/*x*//a/{}"])
def test_a_slash_ends_a_predicate_before_a_body(text: str) -> None:
    assert isinstance(clause(text).predicate, tree.Name)


@pytest.mark.parametrize(
    "description",
    [
        "profile-97hz",
        "fbt::vfs_*:entry",
        "syscall::[rw]*:",
        "pid123:libc.so.1:malloc:",
        "a:b:c`d:e",
        ":::",
        "!x",
        "?",
        "kinst::f:0x3",
        "foo\\*bar",
    ],
)
def test_descriptions_are_words_of_their_own(description: str) -> None:
    assert [one.text for one in clause(f"{description} {{ }}").descriptions] == [description]


def test_a_number_is_the_id_of_a_probe() -> None:
    assert [one.text for one in clause("1, 0x10 { }").descriptions] == ["1", "16"]
    assert error_of("4294967296 { }").tag == "D_ID_OFLOW"


# -- control lines


def pragmas(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(item.kind, item.words) for item in read(text).items if isinstance(item, tree.Pragma)]


def test_pragmas_are_in_the_order_of_the_text() -> None:
    text = (
        '#!/usr/sbin/dtrace -s\n#pragma D option quiet\n  #\tpragma D option a=b\r\n#pragma D binding "1.5" x\n'
        "BEGIN { }\n#pragma D attributes Stable/Stable/Common x\n#pragma D depends_on library a.d\nEND { }\n"
    )
    assert pragmas(text) == [
        ("option", ("quiet",)),
        ("option", ("a=b",)),
        ("binding", ("1.5", "x")),
        ("attributes", ("Stable/Stable/Common", "x")),
        ("depends_on", ("library", "a.d")),
    ]
    kinds = [type(item).__name__ for item in read(text).items]
    assert kinds == ["Pragma"] * 3 + ["Clause"] + ["Pragma"] * 2 + ["Clause"]


def test_a_pragma_inside_a_clause_counts_before_it() -> None:
    items = read("BEGIN {\n#pragma D option quiet\n trace(1); }\n").items
    assert [type(item).__name__ for item in items] == ["Pragma", "Clause"]


@pytest.mark.parametrize(
    "line", ["#", '#ident "x"', "#pragma once", "#pragma ident x", "#pragma", "#pragma D", "#!x", "# 3", "#pragma 4"]
)
def test_lines_that_do_nothing(line: str) -> None:
    assert len(read(f"{line}\nBEGIN {{ }}\n").items) == 1
    assert len(read(f"BEGIN {{\n{line}\n}}\n").items) == 1


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        ("#define X 1", "D_PRAGCTL_INVAL"),
        ("#include <x>", "D_PRAGCTL_INVAL"),
        ('#"x"', "D_PRAGCTL_INVAL"),
        ("#pragma D nothing", "D_PRAGMA_INVAL"),
        ("#pragma D option", "D_PRAGMA_MALFORM"),
        ("#pragma D option a b", "D_PRAGMA_MALFORM"),
        ('#pragma D option "a"', "D_PRAGMA_MALFORM"),
        ("#pragma D attributes x", "D_PRAGMA_MALFORM"),
        ("#pragma D binding 1.5 x", "D_PRAGMA_MALFORM"),
        ("#pragma D depends_on module", "D_PRAGMA_MALFORM"),
        ("#line x", "D_PRAGMA_MALFORM"),
        ('#line "x"', "D_PRAGMA_MALFORM"),
        ("#error", "D_PRAGERR"),
        ('#pragma "x"', "D_PRAGCTL_INVAL"),
        ('#pragma D option "a', "D_STR_NL"),
        ("#line 08", "D_INT_DIGIT"),
    ],
)
def test_lines_that_are_wrong(line: str, tag: str) -> None:
    error = error_of(f"\n{line}\nBEGIN {{ }}\n")
    assert error.tag == tag
    assert error.span is not None
    assert error.span.line == 2


def test_error_says_what_it_was_told() -> None:
    assert error_of('#error this is "not it"\n').message == "#error: this is not it "
    assert error_of("#pragma error no\n").tag == "D_PRAGERR"
    assert error_of("#pragma D error no\n").tag == "D_PRAGERR"


@pytest.mark.parametrize("line", ['#line 40 "x.h"', '# 40 "x.h" 1 3', '#pragma line 40 "x.h"', '  # 40 "x.h"'])
def test_line_markers(line: str) -> None:
    span = error_of(f"int a;\n{line}\nBEGIN {{ }}\nBEGIN {{ x y; }}\n").span
    assert span is not None
    assert (span.file, span.line, span.text) == ("x.h", 41, "BEGIN { x y; }")


def test_a_marker_without_a_name_is_the_program_again() -> None:
    span = error_of('# 1 "x.h"\nint x;\n# 7 ""\nBEGIN { x y; }\n').span
    assert span is not None
    assert (span.file, span.line) == ("", 7)


# -- macros


def test_an_argument_is_what_it_looks_like() -> None:
    assert isinstance(expression("$1", arguments=["12"]), tree.IntegerLiteral)
    assert isinstance(expression("$1", arguments=["0x1fUL"]), tree.IntegerLiteral)
    assert isinstance(expression("$1", arguments=["some_name"]), tree.Name)
    negative = expression("$1", arguments=["-3"])
    assert isinstance(negative, tree.Unary)
    assert negative.operator == "-"
    for argument, value in {
        "a b": b"a b",
        '"quoted"': b"quoted",
        "/bin/sh": b"/bin/sh",
        "": b"",
        "a\\n-": b"a\n-",
    }.items():
        literal = expression("$1", arguments=[argument])
        assert isinstance(literal, tree.StringLiteral)
        assert literal.value == value


def test_two_dollars_make_a_string() -> None:
    literal = expression("$$1", arguments=["12"])
    assert isinstance(literal, tree.StringLiteral)
    assert literal.value == b"12"
    literal = expression("$$pid")
    assert isinstance(literal, tree.StringLiteral)
    assert literal.value == str(os.getpid()).encode()


@pytest.mark.parametrize("name", ["pid", "ppid", "pgid", "sid", "uid", "euid", "gid", "egid", "projid", "taskid"])
def test_variables_are_integers(name: str) -> None:
    literal = expression(f"${name}")
    assert isinstance(literal, tree.IntegerLiteral)
    assert literal.text == str(literal.value)


def test_macros_in_descriptions() -> None:
    macros = Macros(["12", "malloc"], target=99)
    assert macros.expand("pid$1:libc:$2:entry", None) == "pid12:libc:malloc:entry"
    assert macros.expand("pid$target:::", None) == "pid99:::"
    assert macros.unused() == []
    with pytest.raises(DError) as caught:
        macros.expand("pid$3:::", None)
    assert caught.value.tag == "D_PDESC_INVAL"


def test_the_script_is_argument_0() -> None:
    assert Macros([], script="x.d").argument("0", written="$0", default="", span=None) == "x.d"


def test_arguments_that_do_not_exist() -> None:
    for text in ("$1", "$$1", "$nothing", "$$nothing", "$target", "$99999999999999999999"):
        assert error_of(f"BEGIN {{ trace({text}); }}").tag == "D_MACRO_UNDEF"
    macros = Macros([], has_defaults=True)
    assert macros.argument("1", written="$1", default="0", span=None) == "0"


def test_an_argument_too_large_for_any_integer() -> None:
    with pytest.raises(DError) as caught:
        read("BEGIN { trace($1); }", arguments=["18446744073709551616"])
    assert caught.value.tag == "D_MACRO_OFLOW"


def test_every_argument_must_be_used() -> None:
    macros = Macros(["a", "b", "c"])
    macros.argument("2", written="$2", default="", span=None)
    assert macros.unused() == [(1, "a"), (3, "c")]
    with pytest.raises(DError) as caught:
        check_used(macros)
    assert caught.value.tag == "D_MACRO_UNUSED"
    assert caught.value.message == "extraneous argument 'a' ($1 is not referenced)"
    check_used(Macros([]))
