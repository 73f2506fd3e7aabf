"""printa() and clear() mean what aggregations hold when their probe fires, not when the consumer comes next."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run

SAMPLE = Path(__file__).parents[2] / "samples" / "kernel-riscv64.elf"


def output_of(*words: str) -> str:
    result = CliRunner().invoke(run, ["--clock", "icount", "-q", *words], prog_name="kinst-run")
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


def test_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """The guest does not notice."""
    console = tmp_path / "console"
    program = 'fbt::client_run:entry { @ = count(); printa("%@d ", @) }'
    found = output_of(str(SAMPLE), "--console", str(console), "-n", program)
    assert found == "".join(f"{number} " for number in range(1, 17)) + "\n"
    assert console.read_text().replace("\r\n", "\n") == (SAMPLE.parent / "kernel.out").read_text()
