"""A file that an image is in -> what is in it, and how it is written again: values that all readers share."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kinst.targets.packed.reading import Reading
from kinst.targets.values import dataclass

Rebuild = Callable[[NDArray[np.uint8]], bytes]  # another content -> a file that is the same but for that


@dataclass(frozen=True, slots=True)
class Layer:
    """A file that was recognised."""

    kind: str  # "gzip", "Intel HEX", ...
    inner: NDArray[np.uint8]  # what is in it: ELF, or another of these
    rebuild: Rebuild | None = None  # how it is written again; None: it is not
    has_headers: bool = True  # whether its content is in it as it is: of memory alone an ELF file is made, which is not
    is_flat: bool = False  # whether that memory is in one piece, from its start to its end
    has_payloads: bool = False  # whether `inner` is one of several that it may have


@dataclass(frozen=True, slots=True)
class Container:
    """A file that an image is in, which is no ELF file, and can be written with another image."""

    reading: Reading  # how it was read
    original: NDArray[np.uint8]  # its content before anything was patched
    rebuild: Rebuild  # makes such a file of another ELF file
    has_headers: bool  # whether the ELF file is in it, or was made of the memory that is
    is_flat: bool  # whether that memory is in one piece, from its start to its end
