"""What a run exempts from Python's search for garbage, and what others did."""

import gc

from tests.commands.in_process import kinst_run
from tests.samples.machines import MACHINES


def test_what_others_exempted_is_not_taken_back() -> None:
    """These tests have exempted themselves."""
    before = gc.get_freeze_count()
    assert kinst_run(MACHINES["riscv64"].image, "-n", "BEGIN").returncode == 0
    assert min(before, gc.get_freeze_count()) > 0
