"""An image and other files with names -> the names of its functions, in the time that a shell may take for an answer.

A symbol table is all that is read if it names functions: 0.02 s for a vmlinux of 588 MB. Only of small images without
names are the functions searched for.
"""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.file import is_elf, map_file, open_elf
from kinst.targets.elf.symbols import SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, Symbols
from kinst.targets.names.symbol_file import read_symbol_file

_SMALL: Final = 16 << 20  # bytes of an image that is searched: 2 s


def functions_beginning(prefix: str, image: Path, others: tuple[Path | None, ...] = ()) -> list[str]:
    """The names that begin so, sorted. `others`: files of --symbols and --debug-file. Empty if there are no names.

    Raises:
        KinstError: a file cannot be read.
    """
    files = [path for path in others if path is not None]
    symbols = [_symbols(path) for path in files]
    if is_elf(image):
        symbols.append(open_elf(image).symbols)
    found = set[str]()
    for one in symbols:
        found.update(_names(one, prefix))
    if not any(_is_function(one).any() for one in symbols):
        found.update(name for name in _searched(image) if name.startswith(prefix))
    return sorted(found)


def _symbols(path: Path) -> Symbols:
    return open_elf(path).symbols if is_elf(path) else read_symbol_file(path)


def _is_function(symbols: Symbols) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.isin(symbols.kind, (STT_FUNC, STT_GNU_IFUNC)) & (symbols.section != SHN_UNDEF)
    return found


def _names(symbols: Symbols, prefix: str) -> list[str]:
    rows = symbols.rows_beginning(prefix.encode(errors="surrogateescape"))
    return symbols.names(rows[_is_function(symbols)[rows]])


def _searched(image: Path) -> list[str]:
    """Names of functions that are in no symbol table: a kernel's own, those in a patched image, and invented ones."""
    if len(map_file(image)) > _SMALL:
        return []
    from kinst.rewriter.rewriting import Source, open_source  # all that patching needs

    return list(open_source(Source(image)).program.functions.names)
