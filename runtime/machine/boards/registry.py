"""Name of a board -> what makes it. A board is one file here that ends in ``BOARD``, a `BoardFactory`."""

from importlib import import_module

from kinst.runtime.machine.board import BoardFactory


def board_of(name: str) -> BoardFactory:
    """What makes the board of that name, `MachineFacts.board`."""
    board: BoardFactory = import_module(f"kinst.runtime.machine.boards.{name.replace('-', '_')}").BOARD
    return board
