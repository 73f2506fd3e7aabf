"""An image and names of functions -> which of them it cannot have: an answer to a misspelled probe before the seconds
of work that a right one takes.

A file has a function's name among its symbols, or a Linux kernel has it in its kallsyms. Debug information may have a
name of its own (for what is inlined everywhere), as a string. So a name that is no symbol's, and whose bytes are
nowhere in the file, matches nothing. Where this is uncertain no error is given: resolving the names decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.dwarf.byte_search import places_of
from kinst.targets.elf.symbols import SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, Symbols
from kinst.targets.errors import ImageError, KinstError, ProbeError, ProbeNameError
from kinst.targets.image import Image, glance
from kinst.targets.kernels.kernel_names import own_names
from kinst.targets.manifest.seal import SECTION
from kinst.targets.nearest import nearest_names
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.probe import ProbeName, is_glob, is_offset, parse_probe_names
from kinst.targets.values import dataclass

_INVENTED: Final = "sub_"  # how names begin that functions without a name get
_COMPRESSED: Final = 0x800  # SHF_COMPRESSED
_FBT: Final = ("", "entry", "return")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of an image."""

    unknown: Mapping[ProbeName, str] = field(default_factory=dict)  # names that it cannot have: why that is an error
    own_names: Symbols | None = None  # those of `kernel_names.own_names`, which take longest, if they were needed


def refuse_unknown(
    path: Path, module: str | None, specs: Iterable[str], reading: Reading = AS_IT_SAYS
) -> Symbols | None:
    """Refuse the names of a command line if each means a function that the image cannot have, and all its names are its
    own. Returns `Seen.own_names`.

    Raises:
        ProbeError: there are some; a line for each, as `kinst.rewriter.naming.resolve` would have it.
    """
    names: list[ProbeName] = []
    for spec in specs:
        try:
            names += parse_probe_names(spec)
        except ProbeNameError:
            return None  # the image may have providers of its own
    seen = unknown_functions(path, module, names, reading)
    if seen.unknown and all(name in seen.unknown for name in names):  # what is wrong with others takes longer to find
        raise ProbeError("\n".join(f"{name}: {seen.unknown[name]}" for name in names))
    return seen.own_names


def unknown_functions(
    path: Path, module: str | None, names: Sequence[ProbeName], reading: Reading = AS_IT_SAYS
) -> Seen:
    """Which of the names mean a function that the image cannot have. `module` is what the user calls the image."""
    wanted = [name for name in names if _means_function(name)]
    if not wanted:
        return Seen()
    try:
        return _seen(glance(path, module=module, reading=reading), wanted)
    except KinstError:
        return Seen()  # opening the image reports it


def _means_function(name: ProbeName) -> bool:
    """Whether a name means one function, or functions of one name, and nothing else."""
    if not name.function or is_glob(name.function) or name.address is not None or name.function.startswith(_INVENTED):
        return False
    return name.name in _FBT if name.provider == "fbt" else name.provider == "kinst" and _is_place(name.name)


def _is_place(text: str) -> bool:
    """Whether it is the name of a kinst probe in a function, rather than of where inlined copies are entered and
    left."""
    return not text or is_offset(text)


def _seen(image: Image, names: Sequence[ProbeName]) -> Seen:
    names = [name for name in names if name.matches_image(image.module)]
    unnamed = [name for name in names if not len(image.symbols.rows_named(name.function))]
    if not unnamed or image.section(SECTION) is not None:
        return Seen()
    own = None if _is_function(image.symbols).any() else own_names(image)
    symbols = image.symbols if own is None else own
    unnamed = [name for name in unnamed if not len(symbols.rows_named(name.function))]
    rows = np.flatnonzero(_is_function(symbols))
    if not len(rows) or not unnamed or _has_hidden_text(image):
        return Seen({}, own)
    texts = image.data.data
    found = [name for name in unnamed if not places_of(texts, [name.function.encode(errors="surrogateescape") + b"\0"])]
    others = symbols.names(rows) if found else []
    return Seen({name: _reason(name.function, image.module, others) for name in found}, own)


def _is_function(symbols: Symbols) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.isin(symbols.kind, (STT_FUNC, STT_GNU_IFUNC)) & (symbols.section != SHN_UNDEF)
    return found


def _has_hidden_text(image: Image) -> bool:
    """Whether there may be names that the image's bytes do not show: compressed ones, or those of a separate debug
    file."""
    if any(one.flags & _COMPRESSED or one.name.startswith(".zdebug") for one in image.sections):
        return True
    if image.section(".debug_info") is not None:
        return False
    try:
        find_debug(image)
    except ImageError:
        return False
    return True


def _reason(function: str, module: str, known: Sequence[str]) -> str:
    """As `kinst.rewriter.naming.resolve` says it."""
    near = nearest_names(function, known)
    return f"no function {function!r} in {module}" + (f"; the nearest are {', '.join(near)}" if near else "")
