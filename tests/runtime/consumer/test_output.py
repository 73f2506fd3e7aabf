"""dtrace's output of whole records: lines, formats, aggregations, what acts when it is consumed."""

import io
import os
from pathlib import Path

import pytest

from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import AggregatingFunction, ChangeAggregation, Printa
from kinst.runtime.dlang.types.types import CHAR, INT, LONG, STACK, STRING, SYMBOL, UINT, DType
from tests.runtime.consumer.recording import (
    BEGIN_LINE,
    HEADER,
    Recording,
    Session,
    aggregation,
    clause,
    expression,
    printf,
    trace,
)

F = AggregatingFunction
COUNT = aggregation(F.COUNT, STRING, INT)
DISTRIBUTION = b"           value  ------------- Distribution ------------- count    \n"


def begin(*values: object, which: int = 0) -> tuple[int, int, int, int, tuple[object, ...]]:
    return (0, 1, which, 0, values)


def consume(recording: Recording, *taken: object) -> bytes:
    return recording.consume(*taken)  # type: ignore[arg-type]  # records of any values


# -- lines ------------------------------------------------------------------------------------------------------------


def test_default_lines() -> None:
    recording = Recording([clause()])

    assert consume(recording, begin(), (12, 30, 0, 0, ())) == HEADER + BEGIN_LINE + b"\n" + (
        b" 12     30                      vm_fault:17 \n"
    )
    assert consume(recording, begin()) == BEGIN_LINE + b"\n"
    assert recording.finish() == b"\n"


def test_quiet_prints_only_what_actions_print() -> None:
    recording = Recording([clause(), clause(trace(INT), printf(b"[%s]", STRING))], quiet=None)

    assert consume(recording, begin(), begin(5, (b"x",), which=1)) == b"5[x]"
    assert recording.finish() == b"\n"


def test_actions_of_a_line() -> None:
    recording = Recording([clause(trace(INT), trace(STRING), printf(b"%d-%x", INT, LONG))])

    assert consume(recording, begin(5, b"ab", (1, 255))) == HEADER + BEGIN_LINE + (
        b"        5  ab" + b" " * 31 + b"1-ff\n"
    )


def test_actions_that_record_nothing_have_no_value() -> None:
    number = expression(INT)
    recording = Recording(
        [
            clause(
                program.Speculate(number),
                program.Evaluate(number),
                trace(INT),
                program.Aggregate(COUNT, (), None),
                program.Destructive("chill", number),
                program.Exit(number),
            )
        ],
        quiet=None,
    )

    assert consume(recording, begin(5, 3)) == b"5"
    assert recording.output.status == 3


def test_the_console_has_its_place_in_whole_lines() -> None:
    recording = Recording([clause()])

    assert consume(recording, b"boot\nlog", begin(), b"in: ", begin(), b"x\n") == b"boot\n" + HEADER + (
        BEGIN_LINE + b"\n" + BEGIN_LINE + b"\nlogin: x\n"
    )
    assert consume(recording, b"# ") == b""
    assert recording.finish() == b"# \n\n"


def test_without_clauses_the_console_is_as_it_is() -> None:
    recording = Recording()

    assert consume(recording, b"login: ") == b"login: "
    assert recording.finish() == b""


def test_clauses_that_nobody_gave_are_not_seen() -> None:
    recording, written = Recording(), io.BytesIO()
    session = Session([clause()], recording.totals, recording.options)
    output = TextOutput(written, io.StringIO(), session, is_asked=False)
    output.consume([b"login: "])
    output.flush()
    assert written.getvalue() == b"login: "
    output.finish()
    assert written.getvalue() == b"login: "


def test_the_console_elsewhere() -> None:
    written, console = io.BytesIO(), io.BytesIO()
    recording = Recording([clause()])
    session = Session([clause()], recording.totals, recording.options)
    output = TextOutput(written, io.StringIO(), session, console=console)
    output.consume([b"a", (0, 1, 0, 0, ()), b"b"])
    output.finish()

    assert console.getvalue() == b"ab"
    assert written.getvalue() == HEADER + BEGIN_LINE + b"\n\n"


# -- aggregations -----------------------------------------------------------------------------------------------------


def test_unprinted_aggregations_at_the_end() -> None:
    recording = Recording([clause()], quiet=None)
    total = aggregation(F.SUM, number=2)
    recording.add(total, (), -9)
    recording.add(COUNT, (b"ls", 5), 0, 0)
    recording.add(COUNT, (b"cat", -1), 0)

    assert recording.finish() == (
        b"\n"
        b"  cat                                                      -1                1\n"
        b"  ls                                                        5                2\n"
        b"               -9\n"
    )


def test_every_kind_of_key() -> None:
    recording = Recording([clause()])
    made = aggregation(F.MAX, LONG, CHAR, STACK, SYMBOL)
    recording.add(made, (-2, -1, Stack((0x1004,), 5), SymbolName("sym", 0x1000)), 3)

    assert recording.finish() == (
        b"\n               -2 255\n              kernel`main+0x4\n  kernel`main" + b" " * 39 + b"                3\n"
    )


def test_a_distribution_has_an_empty_line_after_it() -> None:
    recording = Recording([clause()])
    recording.add(aggregation(F.QUANTIZE, INT), (3,), 1)

    assert recording.finish() == b"\n        3\n" + DISTRIBUTION + (
        b"               0 |                                         0        \n"
        b"               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
        b"               2 |                                         0        \n"
        b"\n"
    )


def test_printa_without_a_format() -> None:
    recording = Recording([clause(Printa(None, (COUNT,)))], quiet=None)
    recording.add(COUNT, (b"ls", 5), 0)
    row = b"  ls" + b" " * 48 + b"        5                1\n"

    assert consume(recording, begin(None)) == b"\n" + row
    assert consume(recording, begin(None)) == b"\n" + row
    assert recording.finish() == b"\n"  # it was printed


def test_printa_of_nothing_leaves_it_for_the_end() -> None:
    recording = Recording([clause(Printa(None, (COUNT,)), Printa(b"%s %@d\n", (COUNT,)))], quiet=None)

    assert consume(recording, begin(None, None)) == b"\n"
    recording.add(COUNT, (b"ls", 5), 0)
    assert recording.finish().count(b"\n") == 2


def test_printa_with_a_format() -> None:
    recording = Recording([clause(Printa(b"%s:%d=%@d|", (COUNT,)))], quiet=None)
    recording.add(COUNT, (b"ls", 5), 0, 0)
    recording.add(COUNT, (b"cat", 6), 0)

    assert consume(recording, begin(None)) == b"cat:6=1|ls:5=2|"
    assert recording.finish() == b"\n"


def test_printa_of_several() -> None:
    second = aggregation(F.AVG, STRING, INT, number=2)
    recording = Recording(
        [clause(Printa(b"%s %@d %@d\n", (COUNT, second))), clause(Printa(None, (COUNT, second)))], quiet=None
    )
    recording.add(COUNT, (b"ls", 5), 0, 0)
    recording.add(second, (b"cat", 6), 10, 20)

    assert consume(recording, begin(None)) == b"cat 0 15\nls 2 0\n"
    assert consume(recording, begin(None, which=1)) == (
        b"\n  cat" + b" " * 47 + b"        6                0               15\n"
        b"  ls" + b" " * 48 + b"        5                2                0\n"
    )
    assert recording.finish() == b"\n"


def test_printa_of_a_distribution_with_a_format() -> None:
    made = aggregation(F.LQUANTIZE, INT, parameters=(0, 2, 1))
    recording = Recording([clause(Printa(b"<%d>%@d", (made,)))], quiet=None)
    recording.add(made, (1,), 1)

    assert consume(recording, begin(None)).startswith(b"<1>\n" + DISTRIBUTION)


def test_changes_take_effect_where_they_are_consumed() -> None:
    made = aggregation(F.SUM, INT)
    show = Printa(b"%d=%@d ", (made,))

    def change(kind: str) -> ChangeAggregation:
        return ChangeAggregation(kind, made, expression(INT))

    recording = Recording(
        [
            clause(show, change("normalize"), show, change("denormalize"), show),
            clause(change("trunc"), show, change("clear"), show, change("trunc"), show, printf(b".")),
        ],
        quiet=None,
    )
    recording.add(made, (1,), 10)
    recording.add(made, (2,), 20)

    assert consume(recording, begin(None, 5, None, None, None)) == b"1=10 2=20 1=2 2=4 1=10 2=20 "
    assert consume(recording, begin(1, None, None, None, None, None, (), which=1)) == b"2=20 2=0 ."


@pytest.mark.parametrize(("argument", "left"), [(INT, b"1="), (UINT, b"1="), (LONG, b"1=2=")])
def test_the_argument_of_trunc_has_a_sign_whatever_its_type(argument: DType, left: bytes) -> None:
    made = aggregation(F.COUNT, INT)
    recording = Recording(
        [clause(ChangeAggregation("trunc", made, expression(argument)), Printa(b"%d=", (made,)))], quiet=None
    )
    recording.add(made, (2,), 0, 0)
    recording.add(made, (1,), 0)

    assert consume(recording, begin(0xFFFFFFFF, None)) == left


def test_agghist() -> None:
    recording = Recording([clause()], agghist=None)
    made = aggregation(F.SUM, STRING)
    recording.add(made, (b"a",), 1)
    recording.add(made, (b"b",), 3)

    assert recording.finish() == (
        b"\n\n              key  ------------- Distribution ------------- count    \n"
        b"                a |@@@@@@@@@@                               1        \n"
        b"                b |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n"
    )


def test_aggpack() -> None:
    recording = Recording([clause()], aggpack=None, encoding="ascii")
    made = aggregation(F.LQUANTIZE, INT, parameters=(0, 3, 1))
    recording.add(made, (7,), 1, 1)

    assert recording.finish() == (
        b"\n\n      key     min .-----. max      | count\n        7     < 0 :  X  : >= 3     | 2\n"
    )


# -- acting -----------------------------------------------------------------------------------------------------------


def set_option(arguments: int) -> program.SetOption:
    return program.SetOption((program.Text(STRING, b""),) * arguments)


def test_setopt_counts_from_there_on() -> None:
    """For the rest of its clause, too."""
    recording = Recording([clause(trace(INT), set_option(1), trace(INT)), clause(trace(INT))])

    assert consume(recording, begin(1, (b"quiet",), 2), begin(3, which=1)) == HEADER + BEGIN_LINE + b"        1" + b"23"


def test_setopt_changes_what_its_clause_prints_again_and_again() -> None:
    recording = Recording([clause(trace(INT), set_option(2), trace(INT), set_option(2), trace(INT))], quiet=None)
    values = begin(1, (b"quiet", b"no"), 2, (b"quiet", b"yes"), 3)

    assert consume(recording, values, values) == b"1        23" * 2


def test_setopt_of_what_cannot_be_set() -> None:
    recording = Recording([clause(set_option(2), set_option(2))])
    consume(recording, begin((b"bufsize", b"5m"), (b"quiet", b"x")))

    assert recording.errors.getvalue() == (
        "dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): "
        'couldn\'t set option "bufsize" to "5m": Operation illegal when tracing is active\n'
        "dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): "
        'couldn\'t set option "quiet" to "x": Invalid value for specified option: on, off or a number, such as 8\n'
    )


def test_setopt_flowindent_in_the_middle() -> None:
    recording = Recording([clause(set_option(1)), clause()], quiet=None)

    assert consume(recording, begin((b"flowindent",)), (0, 10, 1, 0, ()), (0, 11, 1, 0, ())) == (
        b"  0  -> vm_fault" + b" " * 30 + b"  0  <- vm_fault" + b" " * 30
    )


def test_freopen_and_back(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"before ")
    recording = Recording(
        [
            clause(printf(b"1"), printf(b"%s/%s", STRING, STRING, kind="freopen"), printf(b"2")),
            clause(printf(b"3"), printf(b"", kind="freopen"), printf(b"4")),
        ],
        quiet=None,
    )
    place = os.fsencode(tmp_path)

    assert consume(recording, begin((), (place, b"a.txt"), ()), begin((), (), (), which=1)) == b"14"
    assert path.read_bytes() == b"before 23"


def test_freopen_that_fails() -> None:
    recording = Recording([clause(printf(b"/nowhere/x", kind="freopen"), printf(b"on"))], quiet=None)

    assert consume(recording, begin((), ())) == b"on"
    assert recording.errors.getvalue() == (
        "dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): "
        'couldn\'t freopen() "/nowhere/x": No such file or directory\n'
    )


def test_ftruncate(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    recording = Recording(
        [clause(printf(b"%s", STRING, kind="freopen"), printf(b"1"), program.Truncate(), printf(b"2"))], quiet=None
    )
    consume(recording, begin((os.fsencode(path),), (), None, ()))
    recording.finish()

    assert path.read_bytes() == b"2\n"


def test_system_prints_in_its_place() -> None:
    recording = Recording(
        [clause(printf(b"1\n"), printf(b"echo %s | tr a-z A-Z", STRING, kind="system"), printf(b"2\n"))], quiet=None
    )

    assert consume(recording, begin((), (b"hello",), ())) == b"1\nHELLO\n2\n"


def test_system_with_a_stream_of_the_system(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With -o the command's own output still goes to stdout."""
    recording = Recording()
    with (tmp_path / "out").open("wb") as file:
        made = [clause(printf(b"1\n"), printf(b"echo hello", kind="system"))]
        recording.options.set("quiet", None)
        output = TextOutput(file, io.StringIO(), Session(made, recording.totals, recording.options))
        output.consume([(0, 1, 0, 0, ((), ()))])
        output.flush()

    assert capfd.readouterr().out == "hello\n"
    assert (tmp_path / "out").read_bytes() == b"1\n"
