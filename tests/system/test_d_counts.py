"""D programs on whole images: count() of every function is what a hook of raw Unicorn counts on the plain image, and
two runs under `--clock icount` print the same bytes, times included."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run as kinst_run
from tests.gated import long_where
from tests.system.cases import CASES, Case
from tests.system.plain import manifest_of, plain_run

COUNTS = 'fbt:::entry { @[probefunc] = count(); } END { printa("%s %@d\\n", @); }'
TIMES = """
fbt:::entry { self->start[probefunc] = timestamp; @first[probefunc] = min(timestamp); @where[stack(3)] = count(); }
fbt:::return /self->start[probefunc]/ { @time[probefunc] = quantize(timestamp - self->start[probefunc]);
    self->start[probefunc] = 0; }
profile-4999 { @pc[arg0] = count(); }
tick-7ms { printf("%d %d %x\\n", timestamp, walltimestamp, rand()); }
END { printf("%d\\n", timestamp); }
"""


def without_keys(case: Case) -> Case:
    """Up to where it asks for a key: nobody is there to press one."""
    return case if case.asks is None else replace(case, until=case.asks.decode(), asks=None)


RUNS = [without_keys(case) for case in CASES]


def printed(case: Case, program: str) -> str:
    words = ["-q", "--clock", "icount", "-x", "dynvarsize=64m", "-n", program, str(case.path)]
    until = [] if case.until is None else ["--until", case.until]
    result = CliRunner().invoke(kinst_run, [*words, *until, "--console", "/dev/null"], prog_name="kinst-run")
    assert (result.exit_code, result.stderr) == (0, ""), f"{result.stderr}\n{result.exception!r}"
    return result.stdout


@pytest.mark.parametrize(
    "case", long_where(RUNS, lambda case: not case.is_sample and case.image != "gnumach"), ids=lambda case: case.image
)
def test_counts_of_all_functions(case: Case) -> None:
    manifest = manifest_of(case, "fbt:::entry")
    executions = plain_run(case).executed(np.ascontiguousarray(manifest.sites["address"]))
    wanted: Counter[str] = Counter()  # functions of the same name count as one
    for function, count in zip(manifest.sites["function"].tolist(), executions.tolist(), strict=True):
        wanted[manifest.function_name(function)] += count
    rows = (line.rsplit(" ", 1) for line in printed(case, COUNTS).splitlines() if line)
    assert {name: int(count) for name, count in rows} == {name: count for name, count in wanted.items() if count}
    assert wanted.total() > 1000


# With a stack for each of up to two million calls, firmware takes from a quarter of a minute to one.
@pytest.mark.parametrize("case", long_where(RUNS, lambda case: not case.is_sample), ids=lambda case: case.image)
def test_two_runs_print_the_same(case: Case) -> None:
    first = printed(case, TIMES)
    assert len(first) > 1000
    assert printed(case, TIMES) == first
