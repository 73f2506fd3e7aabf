"""Firmware of the boards that ship reaches its prompt, with the same console when all functions are probed."""

from pathlib import Path

import pytest

from tests.board_boots import BOOTS, Firmware


@pytest.mark.long
@pytest.mark.parametrize("name", BOOTS)
def test_firmware_reaches_its_prompt(name: str, tmp_path: Path) -> None:
    firmware = Firmware(name, tmp_path)
    plain, probed = firmware.run(), firmware.probed()
    assert (plain.error, probed.error) == ("", "")
    assert "U-Boot 20" in plain.console
    assert plain.lines == probed.lines
    assert int(probed.output) > 10_000
