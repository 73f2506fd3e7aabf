"""A patched run equals the plain run: what is printed, when, how it ends, all memory and all registers.

Under `--clock icount` time is the number of executed instructions, so that equal times mean that every interrupt came
at the same instruction.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from kinst.runtime.tracing.given import MethodName
from kinst.targets.arch.amd64 import EMULABLE
from tests.gated import long_after_first
from tests.system.cases import BY_NAME, SAMPLES, Case, each_sample_and
from tests.system.plain import drawn_functions, drawn_probes, plain_run
from tests.system.runs import Run, run
from tests.system.state import differences

ALL_FBT = ("fbt:::entry", "fbt:::return")
ALL_KINST = ("kinst:::",)
each_sample = pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)


def on(*images: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", each_sample_and(*images), ids=lambda case: case.image)


def compared(case: Case, descriptions: Sequence[str], cpus: int = 1, method: MethodName | None = None) -> Run:
    """The patched run, which nothing tells from the plain one."""
    patched = run(case, descriptions, cpus=cpus, method=method)
    assert differences(plain_run(case, cpus), patched) == []
    assert patched.hits
    return patched


@on("gnumach")
def test_entry_and_return_of_all_functions(case: Case) -> None:
    compared(case, ALL_FBT)


@pytest.mark.long  # the gate has every instruction of the samples; hits of drawn ones: test_exact_hits
@on("opensbi-1.6", "gnumach")
def test_every_instruction_of_drawn_functions(case: Case) -> None:
    patched = compared(case, drawn_probes(case))
    assert len(drawn_functions(case)) >= 50
    per_function = dict.fromkeys(drawn_functions(case), 0)
    for (_, identifier), count in patched.hits.items():
        row = int(patched.sites.rows_of(np.array([identifier]))[0])
        name = patched.manifest.function_name(int(patched.manifest.probes["function"][row]))
        per_function[name] += count
    assert min(per_function.values()) > 0
    assert max(per_function.values()) > 10_000  # loops are among them


@each_sample
@pytest.mark.parametrize("cpus", [1, *(pytest.param(cpus, marks=pytest.mark.long) for cpus in (2, 4))])
def test_every_instruction_of_a_sample(case: Case, cpus: int) -> None:
    compared(case, ALL_KINST, cpus)


@each_sample
def test_all_probes_of_a_sample_at_once(case: Case) -> None:
    compared(case, (*ALL_FBT, *ALL_KINST), 2)


@pytest.mark.long  # the gate has every instruction of the samples, and of functions drawn from these two
@pytest.mark.parametrize("name", ["gnumach", "opensbi-1.6"])
def test_every_instruction_of_firmware_and_of_a_kernel(name: str) -> None:
    compared(BY_NAME[name], ALL_KINST)


@pytest.mark.parametrize("name", long_after_first(["kernel-amd64", "gnumach"]))
def test_stack_frames_emulated(name: str) -> None:
    """What functions of amd64 begin and end with, on request."""
    emulated = compared(BY_NAME[name], ("kinst:::",) if BY_NAME[name].is_sample else ALL_FBT, method="emulate")
    kinds = emulated.manifest.sites["kind"]
    assert EMULABLE & set(kinds.tolist())
    assert emulated.manifest.method == "emulate"
