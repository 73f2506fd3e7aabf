"""OpenSBI, U-Boot and Linux in one run, with probes in all functions of the three: the same console as without."""

from pathlib import Path

import pytest

from tests.stage_boots import Stages, wrong


@pytest.mark.long
def test_three_stages_boot_in_one_run(tmp_path: Path) -> None:
    stages = Stages(tmp_path)
    plain, probed = stages.run(), stages.probed()
    assert not wrong(plain, probed)
    assert "U-Boot 20" in "\n".join(plain.lines)
