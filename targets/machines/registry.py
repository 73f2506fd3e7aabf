"""Machine name, board file or architecture -> the machine's record. The machines that ship are files in `boards`."""

from functools import cache
from pathlib import Path
from typing import Final

from kinst.targets.errors import UsageError
from kinst.targets.machines.board_file import is_file, read_board, refuse_missing
from kinst.targets.machines.machine import MachineFacts

BOARDS: Final = Path(__file__).with_name("boards")
_DEFAULTS: Final = {"riscv64": "virt-riscv64", "arm64": "virt-arm64", "amd64": "pc-amd64"}
# Those with a model of QEMU's board, which come first, and whose tests compare with QEMU.
MODELLED: Final = ("virt-riscv64", "virt-arm64", "virt-el2-arm64", "pc-amd64")
MACHINES: Final = (*MODELLED, *sorted(path.stem for path in BOARDS.glob("*.toml") if path.stem not in MODELLED))


def machine_facts(name: str) -> MachineFacts:
    """The record of a machine that ships, or of a board file; UsageError for a name that does not exist, or a file that
    is wrong."""
    if is_file(name):
        return read_board(Path(name), BOARDS)
    if name not in MACHINES:
        raise refuse_missing(name, MACHINES)
    return _shipped(name)


@cache
def _shipped(name: str) -> MachineFacts:
    return read_board(BOARDS / f"{name}.toml", BOARDS, name)


def default_machine(arch: str) -> str:
    """The machine that runs an image of architecture `arch` unless the user names another."""
    if arch not in _DEFAULTS:
        raise UsageError(f"no machine for {arch}; there are {', '.join(MACHINES)}")
    return _DEFAULTS[arch]
