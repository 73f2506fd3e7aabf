"""printa() and clear() mean what aggregations hold when their probe fires, not when the consumer comes next."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-riscv64.elf"


def output_of(*words: str, clock: str = "icount") -> str:
    result = CliRunner().invoke(run, ["--clock", clock, "-q", *words], prog_name="kinst-run")
    assert result.exit_code == 0, f"{result.stderr}\n{result.exception!r}"
    return result.stdout


COUNTED = 'tick-1ms { @ = count(); printa("%@d ", @) } tick-1ms /++n == 4/ { exit(0) }'
CLEARED = 'tick-1ms { @ = count() } tick-2ms { printa("%@d ", @); clear(@); } tick-2ms /++n == 3/ { exit(0) }'


@pytest.mark.parametrize(("program", "expected"), [(COUNTED, "1 2 3 4 \n"), (CLEARED, "2 2 2 \n")])
@pytest.mark.parametrize("image", [(), (str(SAMPLE), "--console", "/dev/null")])
def test_each_tick_prints_what_it_finds(image: tuple[str, ...], program: str, expected: str) -> None:
    assert output_of(*image, "-n", program) == expected


def test_clauses_of_the_same_firing_count() -> None:
    """As for dtrace, whose consumer never sees half a firing."""
    first = 'END { @ = count() } tick-1ms { printa("%@d ", @) }'
    program = f"{first} tick-1ms {{ @ = count() }} tick-1ms /++n == 3/ {{ exit(0) }}"
    assert output_of("-n", program) == "1 2 4 \n"


def test_what_end_adds_counts_where_the_firing_ended_the_run() -> None:
    """dtrace stops, which fires END, before it consumes."""
    assert output_of("-n", 'BEGIN { @ = count(); printa("%@d", @); exit(0) } END { @ = count() }') == "2\n"


def test_other_buffers_are_read_at_the_end() -> None:
    program = 'tick-1ms { @ = count(); printa("%@d ", @) } tick-1ms /++n == 3/ { exit(0) }'
    assert output_of("-x", "bufpolicy=ring", "-n", program) == "3 3 3 \n"


IMAGE = (str(SAMPLE), "--console", "/dev/null")
RATES = ("switchrate=1ns aggrate=1h", "switchrate=1h aggrate=1h", "switchrate=1h aggrate=1ns", "bufpolicy=fill")


def ending(last: str, end: str = "", *, first: str = "", probe: str = "tick-1ms") -> str:
    """A program that counts to three, and what it does in the last firing and in END."""
    return f"int i; {first} {probe} {{ @ = count(); i++ }} {probe} /i == 3/ {{ {last} exit(0) }} END {{ {end} }}"


PRINTED = 'printa("%@d ", @);'
ENDINGS = [
    (ending(PRINTED), "3 \n"),
    (ending(PRINTED, first="END { @ = count() }"), "4 \n"),
    (ending("", PRINTED), "3 \n"),
    (ending("", "@ = count();" + PRINTED), "4 \n"),
    (ending(PRINTED + "clear(@);" + PRINTED, "@ = count();" + PRINTED), "4 0 0 \n"),
    (ending("normalize(@, 2);", "@ = sum(5);" + PRINTED).replace("count()", "sum(1)"), "4 \n"),
    (ending("trunc(@);", PRINTED), "\n"),
    (ending("denormalize(@);", "normalize(@, 3);" + PRINTED), "1 \n"),
]


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize(("program", "expected"), ENDINGS)
def test_the_last_firing_sees_all(program: str, expected: str, rates: str) -> None:
    options = [word for rate in rates.split() for word in ("-x", rate)]
    pragmas = "".join(f"#pragma D option {rate}\n" for rate in rates.split())
    assert output_of(*options, "-n", program) == expected
    assert output_of("-n", pragmas + program) == expected


@pytest.mark.parametrize("clock", ["host", "icount"])
@pytest.mark.parametrize("rates", RATES[:2])
@pytest.mark.parametrize("image", [(), IMAGE])
def test_the_last_firing_sees_all_by_every_clock(image: tuple[str, ...], rates: str, clock: str) -> None:
    options = [word for rate in rates.split() for word in ("-x", rate)]
    probe = "fbt::vfs_walk:entry" if image else "tick-1ms"
    program = ending(PRINTED + "@ = count();", "@ = count();" + PRINTED, probe=probe)
    assert output_of(*image, *options, "-n", program, clock=clock) == "5 5 \n"


def test_what_is_committed_sees_what_is_aggregated() -> None:
    """A speculation's printa() happens when it is committed."""
    program = """BEGIN { s = speculation() } BEGIN { speculate(s); printa("%@d ", @) } BEGIN, END { @ = count() }
        tick-1ms { @ = count() } tick-2ms { commit(s) } tick-7ms { @ = count(); printa("%@d ", @); exit(0) }"""
    program = f"END {{ @ = count() }} {program}"
    assert output_of("-x", "switchrate=1ns", "-x", "aggrate=1h", "-n", program) == "3 11 \n"


def test_a_full_buffer_is_read_with_the_aggregations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffer is drained in the middle of a firing: printa() before that saw the count so far."""
    monkeypatch.setattr("kinst.runtime.clauses.buffers.BACKLOG", 8 << 10)
    many = 'tick-1ms { printf("%300s", "") } ' * 20
    program = f'tick-1ms {{ @ = count(); printa("%@d ", @) }} {many} tick-1ms /++n == 3/ {{ exit(0) }}'
    assert output_of("-x", "aggrate=1h", "-n", program).split() == ["1", "2", "3"]


def test_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """The guest does not notice."""
    console = tmp_path / "console"
    program = 'fbt::client_run:entry { @ = count(); printa("%@d ", @) }'
    found = output_of(str(SAMPLE), "--console", str(console), "-n", program)
    assert found == "".join(f"{number} " for number in range(1, 17)) + "\n"
    assert console.read_text().replace("\r\n", "\n") == (SAMPLE.parent / "kernel.out").read_text()
