"""What --learn asks for: the file that keeps what is learned, and the board that it extends."""

import os
from pathlib import Path

from kinst.targets.errors import UsageError
from kinst.targets.machines.board_file import extended_by, is_file
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class LearnRequest:
    """What --learn asks for: the file, and the board that it extends, as it names it; None: the image's own."""

    file: Path
    extends: str | None


def learn_request(file: Path, board: str | None) -> tuple[LearnRequest, str | None]:
    """What --learn FILE means with a --board, and the board that the image runs on: FILE, if it is there already.

    Raises:
        UsageError: the file is of another board.
    """
    folder = file.absolute().parent
    extends = os.path.relpath(board, folder) if board is not None and is_file(board) else board
    if not file.exists() or not file.stat().st_size:
        return LearnRequest(file, extends), board
    text = str(file) if is_file(str(file)) else f"./{file}"
    if board is not None and not (is_file(board) and Path(board).exists() and file.samefile(board)):
        before = extended_by(file)
        named = folder / before if before is not None and is_file(before) else None
        is_same = before == board if named is None else is_file(board) and named.resolve() == Path(board).resolve()
        if not is_same:
            raise UsageError(f"--learn {file}: extends {before or 'no board'}, and not {board}: name another file")
    return LearnRequest(file, extends), text
