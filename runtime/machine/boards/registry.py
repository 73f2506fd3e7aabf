"""Machine name -> a new board. A board is one file here that ends in ``BOARD``, a `BoardFactory`."""

from importlib import import_module

from kinst.runtime.machine.board import Board
from kinst.targets.machines.registry import module_name


def new_board(machine: str) -> Board:
    """The board of a machine in `kinst.targets.machines.registry.MACHINES`."""
    board: Board = import_module(f"kinst.runtime.machine.boards.{module_name(machine)}").BOARD()
    return board
