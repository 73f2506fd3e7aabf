"""A file of --symbols that is not ELF -> columns of symbols: System.map, nm, objdump -t, Ghidra's CSV, IDA's MAP."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from kinst.targets.elf.sections import CodeRegion
from kinst.targets.elf.symbols import STT_FUNC, STT_NOTYPE, STT_OBJECT, Symbols, nm_symbols, to_the_next
from kinst.targets.errors import ImageError
from kinst.targets.names import ghidra, ida, nm, objdump
from kinst.targets.names.entry import Entry

# Whether a file that begins with these lines is one of the tool's, and how it is read; the last one takes what is left.
_READERS: Final[tuple[tuple[Callable[[Sequence[str]], bool], Callable[[Sequence[str]], Iterator[Entry]]], ...]] = (
    (objdump.is_table, objdump.entries),
    (ida.is_map, ida.entries),
    (ghidra.is_table, ghidra.entries),
)
_DATA: Final = b"bBdDgGrRsS"  # nm's letters, and those of `entry`
_FIRST: Final = 200  # lines: before IDA's names is a list of segments


def read_symbol_file(path: Path, *, regions: Sequence[CodeRegion] = (), is_hosted: bool = False) -> Symbols:
    """The symbols of a file. What begins a function is told by the file; in nm's, a letter says that it is in .text.

    There, where functions have sizes (nm -S), or FDEs (user programs), what has none is only a label.

    Args:
        path: the file.
        is_hosted: the image is a user program or library.
        regions: the code of the image it is to name: a file of another image, or of another link address, is refused.

    Raises:
        ImageError: the file cannot be read; a line is none of these, with its number; or it does not fit the image.
    """
    try:
        lines = path.read_bytes().decode(errors="backslashreplace").splitlines()
    except OSError as error:
        raise ImageError(f"{path}: cannot be read: {error.strerror}") from None
    read = next((read for is_one, read in _READERS if is_one(lines[:_FIRST])), None)
    try:
        found = [*(nm.entries if read is None else read)(lines)]
    except ImageError as error:
        raise ImageError(f"{path}{error}") from None
    if not found:
        raise ImageError(f"{path}: no symbols: expected lines such as 'ffffffff81000000 T _text'")
    symbols = _with_data(nm_symbols(found), "".join(letter for _, _, letter, _ in found))
    if read is ida.entries:
        symbols = _based(symbols, regions)
    _check_fit(path, symbols, regions)
    return symbols if read is not None else _without_labels(symbols, is_hosted=is_hosted)


def _with_data(symbols: Symbols, letters: str) -> Symbols:
    """What is data by its letter is so up to the next name: a file without sections does not say it itself."""
    is_data = np.isin(np.frombuffer(letters.encode(), np.uint8), np.frombuffer(_DATA, np.uint8))
    is_data &= symbols.kind == STT_NOTYPE
    rows, size = np.flatnonzero(is_data & (symbols.size == 0)), symbols.size.copy()
    size[rows] = to_the_next(symbols.address, rows) if len(rows) else 0
    kind = np.where(is_data, STT_OBJECT, symbols.kind).astype(np.uint8)
    return replace(symbols, kind=kind, size=size)


def _without_labels(symbols: Symbols, *, is_hosted: bool) -> Symbols:
    label = (symbols.kind == STT_FUNC) & (symbols.size == 0) & (is_hosted | bool(symbols.size.any()))
    return replace(symbols, kind=np.where(label, STT_NOTYPE, symbols.kind).astype(np.uint8))


def _based(symbols: Symbols, regions: Sequence[CodeRegion]) -> Symbols:
    """IDA counts from the start of a segment, unless that has no base: then it has addresses."""
    if not regions or _fitting(symbols, regions) * 2 >= _functions(symbols):
        return symbols
    moved = replace(symbols, address=symbols.address + np.uint64(regions[0].address))
    return moved if _fitting(moved, regions) > _fitting(symbols, regions) else symbols


def _functions(symbols: Symbols) -> int:
    return int((symbols.kind == STT_FUNC).sum())


def _fitting(symbols: Symbols, regions: Sequence[CodeRegion]) -> int:
    """How many functions are in the code."""
    address = symbols.address[symbols.kind == STT_FUNC]
    inside = np.zeros(len(address), np.bool_)
    for region in regions:
        inside |= address - np.uint64(region.address) < np.uint64(region.size)  # wraps round below the start: not less
    return int(inside.sum())


def _check_fit(path: Path, symbols: Symbols, regions: Sequence[CodeRegion]) -> None:
    """Half of the code symbols must be in the code: a System.map also has vdso and per-CPU ones that are not."""
    address = symbols.address[symbols.kind == STT_FUNC]
    if regions and _fitting(symbols, regions) * 2 < max(len(address), 1):
        low, high = int(address.min(initial=2**64 - 1)), int(address.max(initial=0))
        where = f"its code is at {low:#x} to {high:#x}" if len(address) else "it has no code"
        raise ImageError(
            f"{path}: symbols of another image: {where}, this image's at {regions[0].address:#x} "
            f"to {regions[-1].address + regions[-1].size:#x}"
        )
