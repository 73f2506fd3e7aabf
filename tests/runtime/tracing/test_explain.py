"""-x explain: what becomes of clauses and sites."""

from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.system.cases import SAMPLES

PROGRAM = """fbt::kmalloc:, fbt::kfree: { @ = count(); } fbt::kmalloc:entry /arg0 > 3/ { @a = count(); }
    fbt::memset:entry /stackdepth/ { @b = count(); } fbt::memcpy:return { self->at = timestamp; }
    fbt::memcpy:entry /arg8/ { @c = count(); }"""


def explained(*words: str) -> list[str]:
    told = []
    for case in SAMPLES:
        result = CliRunner().invoke(run, ["-x", "explain", "-e", *words, "-n", PROGRAM, str(case.path)])
        assert result.exit_code == 0, result.stderr
        told += [line.removeprefix("kinst-run: ") for line in result.stderr.splitlines() if "hits are" in line]
    return told


def test_it_says_what_becomes_of_clauses_and_sites() -> None:
    told = explained()
    more = "its predicate reads more than is recorded of a hit, or may fail"
    assert told[:6] == [
        "fbt::kmalloc:: hits are counted",
        "fbt::kfree:: hits are counted",
        "fbt::kmalloc:entry: hits are batched, once for all that are alike",
        f"fbt::memset:entry: hits are dispatched: {more}",
        "fbt::memcpy:return: hits are batched, one by one in their order",
        "fbt::memcpy:entry: hits are batched, once for all that are alike",
    ]
    assert [line for line in told if line.startswith("at ")][:5] == [
        "at 3 of 7 sites hits are counted",
        "at 1 of 7 sites hits are batched, once for all that are alike",
        "at 1 of 7 sites hits are batched, one by one in their order",
        "at 1 of 7 sites hits are dispatched: an argument there is not in a register",
        f"at 1 of 7 sites hits are dispatched: {more}",
    ]
    assert any("without a breakpoint" in line for line in explained("--method", "block"))


def test_what_was_asked_for_is_a_reason() -> None:
    assert sum("--method trap" in line for line in explained("--method", "trap")) == len(SAMPLES)
    assert any("aggsize is set" in line for line in explained("-x", "aggsize=1m"))
