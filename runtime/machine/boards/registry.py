"""Machine name -> its board. A board is one file here that ends in ``BOARD``, a `BoardFactory`."""

from importlib import import_module

from kinst.runtime.machine.board import BoardFactory
from kinst.targets.machines.registry import module_name


def board_of(machine: str) -> BoardFactory:
    """What makes the board of a machine in `kinst.targets.machines.registry.MACHINES`."""
    board: BoardFactory = import_module(f"kinst.runtime.machine.boards.{module_name(machine)}").BOARD
    return board
