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
        told += [line for line in result.stderr.splitlines() if "hit" in line or "count" in line]
    return told


def test_it_says_what_becomes_of_clauses_and_sites() -> None:
    told = explained()
    more = "its predicate looks at more than is recorded of a hit, or may fail"
    assert told[:6] == [
        "kinst-run: fbt::kmalloc:: hits are counted",
        "kinst-run: fbt::kfree:: hits are counted",
        "kinst-run: fbt::kmalloc:entry: hits are recorded",
        f"kinst-run: fbt::memset:entry: each hit is told: {more}",
        "kinst-run: fbt::memcpy:return: hits are recorded, and told later in their order",
        "kinst-run: fbt::memcpy:entry: hits are recorded",
    ]
    assert "kinst-run: each hit is told at 1: the clauses of a probe there look at each hit" in told
    assert "kinst-run: each hit is told at 1: an argument there is not in a register" in told
    assert sum("the emulator counts or records at" in line for line in told) == len(SAMPLES)


def test_what_was_asked_for_is_a_reason() -> None:
    assert sum("--method trap" in line for line in explained("--method", "trap")) == len(SAMPLES)
    assert any("aggsize is set" in line for line in explained("-x", "aggsize=1m"))
