"""`tests.live` itself: what it compares is equal for our own kernels, and it tells when it is not."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.images import real_image
from tests.live import SUBJECTS, Beside, Subject, beside
from tests.runtime.live.qemus import needs, on
from tests.samples.machines import MACHINES

# The gate has returns on one machine; counts of entries on all are in tests/runtime/live.
PAIRS = [
    pytest.param(machine, name, marks=[pytest.mark.long] * ((machine, name) != ("arm64", "return")))
    for name in ("entry", "return")
    for machine in MACHINES
]


@pytest.mark.parametrize(("machine", "name"), PAIRS)
def test_counts_are_those_of_qemus_plugin(machine: str, name: str, tmp_path: Path) -> None:
    sample = MACHINES[machine]
    needs(sample.qemu[0])
    found = beside(sample.image, Subject(machine, on(sample), probes=f"fbt:::{name}"), tmp_path)
    if found is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), "the gate's QEMU has plugins"
        pytest.skip("its QEMU has no plugins, or there is no gcc")
    assert found.difference == ""
    assert sum(found.ours.values()) > 1000
    assert "vfs_get 177 not 176" in replace(found, ours={**found.ours, "vfs_get": 177}).difference


@pytest.mark.long
@pytest.mark.parametrize("board", ["raspi3b", "sifive_u -smp 5 -m 2G"])
def test_linux_on_a_board_that_is_none_of_ours(board: str, tmp_path: Path) -> None:
    (subject,) = (one for one in SUBJECTS if board in one.on)
    needs(subject.on.split()[0])
    found = beside(real_image(subject.image), subject, tmp_path)
    if found is None:
        pytest.skip("its QEMU has no plugins, or there is no gcc")
    assert found.difference == ""
    assert len(found.ours) > 4000


def test_a_cpu_that_is_stopped_in_a_trampoline_is_no_difference() -> None:
    assert Beside({"f": 6, "g": 2}, {"f": 7, "g": 3}, 2).difference == ""
    assert Beside({"f": 6, "g": 2}, {"f": 7, "g": 3}, 1).difference == "f 6 not 7, g 2 not 3"
    assert Beside({"f": 7}, {"f": 6}, 4).difference == "f 7 not 6"
