"""Ghidra's tables of symbols or functions, exported as CSV -> `Entry`.

    "Name","Location","Type","Namespace","Source","Reference Count"       Window > Symbol Table
    "Name","Location","Function Signature","Function Size"                Window > Functions

The columns that are shown are exported, in any order. Locations on a stack, in a register or in another program are
left out; so is the name of an address space before a colon.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Final

from kinst.targets.errors import ImageError
from kinst.targets.names.entry import DATA, FUNCTION, LABEL, Entry

_NAME: Final = ("name", "label")
_PLACE: Final = ("location", "address", "entry point", "entry")
_SIZE: Final = ("function size", "size")
_ADDRESS: Final = re.compile(r"(?:[\w.]+:+)?(?:0x)?([0-9a-f]{1,16})", re.IGNORECASE)
_ELSEWHERE: Final = ("external:", "stack", "hash:", "register:", "const:", "unique:", "join:")
_LETTERS: Final = {
    "function": FUNCTION, "thunk function": FUNCTION, "thunk": FUNCTION, "data label": DATA, "label": LABEL,
    "instruction label": LABEL,
}  # fmt: skip
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")


def is_table(lines: Sequence[str]) -> bool:
    """Whether a file that begins so is one."""
    columns = _columns(lines[0]) if lines else []
    return _column(columns, _NAME) is not None and _column(columns, _PLACE) is not None


def entries(lines: Sequence[str]) -> Iterator[Entry]:
    """Functions, data and labels that have an address. Raises ImageError: a row has another form than the first one."""
    columns = _columns(lines[0])
    name, place = _column(columns, _NAME), _column(columns, _PLACE)
    size, kind = _column(columns, _SIZE), _column(columns, ("type",))
    assert name is not None and place is not None, "it is a table"
    for number, row in enumerate(_rows(lines[1:], lines[0]), 2):
        if not row:
            continue
        if len(row) < len(columns):
            raise ImageError(f":{number}: {len(row)} columns, where the first line has {len(columns)}")
        letter = FUNCTION if kind is None else _LETTERS.get(row[kind].strip().lower())
        found = _ADDRESS.fullmatch(row[place].strip())
        if (
            found is None
            or letter is None
            or row[place].strip().lower().startswith(_ELSEWHERE)
            or not row[name].strip()
        ):
            continue
        yield int(found[1], 16), 0 if size is None else _number(row[size]), letter, row[name].strip()


def _rows(lines: Sequence[str], first: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines, delimiter="\t" if "\t" in first else ",")
    except csv.Error as error:
        raise ImageError(f": no CSV: {error}") from None


def _columns(line: str) -> list[str]:
    return [name.strip().lower() for row in _rows([line.removeprefix("\ufeff")], line) for name in row]


def _column(columns: Sequence[str], names: Sequence[str]) -> int | None:
    return next((at for at, name in enumerate(columns) if name in names), None)


def _number(text: str) -> int:
    found = int(text, 0) if _NUMBER.fullmatch(text.strip()) and not re.match(r"0[0-9]", text.strip()) else 0
    return found if found < 1 << 64 else 0
