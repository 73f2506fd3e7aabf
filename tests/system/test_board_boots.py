"""Firmware of the boards that ship reaches its prompt, with the same console when all functions are probed."""

import re
from pathlib import Path

import pytest

from kinst.targets.machines.registry import BOARDS
from tests.board_boots import BOOTS, Firmware
from tests.runtime.live.qemus import needs


@pytest.mark.long
@pytest.mark.parametrize("name", BOOTS)
def test_firmware_reaches_its_prompt(name: str, tmp_path: Path) -> None:
    firmware = Firmware(name, tmp_path)
    plain, probed = firmware.run(), firmware.probed()
    assert (plain.error, probed.error) == ("", "")
    assert "U-Boot 20" in plain.console
    assert plain.lines == probed.lines
    assert int(probed.output) > 10_000


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, boot in BOOTS.items() if boot.qemu])
def test_firmware_prints_what_it_prints_under_qemu(name: str, tmp_path: Path) -> None:
    needs(BOOTS[name].qemu[0])
    firmware = Firmware(name, tmp_path)
    plain, beside = firmware.run(), firmware.under_qemu()
    assert beside is not None
    assert (plain.error, beside.error) == ("", "")
    assert plain.lines == beside.lines


def without_rules(name: str, folder: Path) -> Path:
    """A board that ships without what is known of its registers."""
    text = re.sub(r"^\w+ = \{ offset.*\n|^reads = .*\n", "", (BOARDS / f"{name}.toml").read_text(), flags=re.MULTILINE)
    assert "reads" not in text
    file = folder / "without.toml"
    file.write_text(text)
    return file


@pytest.mark.long
@pytest.mark.parametrize("name", ["visionfive2", "hifive-unmatched"])
def test_firmware_reaches_its_prompt_by_what_is_learned(name: str, tmp_path: Path) -> None:
    firmware, learned = Firmware(name, tmp_path), tmp_path / "learned.toml"
    board = without_rules(name, tmp_path)
    first = firmware.run("--board", str(board), "--learn", str(learned))
    assert (first.error, "U-Boot 20" in first.console) == ("", True)
    text = learned.read_text()
    if name == "visionfive2":  # the rule that the board has by its makers
        assert 'reads = { rule = "last", set = 0x80000000 }' in text.partition("[registers.flash.R0]")[2]
    again = firmware.run("--board", str(learned))
    assert (again.error, "U-Boot 20" in again.console) == ("", True)
