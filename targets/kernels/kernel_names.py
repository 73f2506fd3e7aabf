"""An image without symbols -> those that the Linux kernel in it keeps for its own messages."""

import numpy as np

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.elf.symbols import Symbols, no_symbols
from kinst.targets.image import Image
from kinst.targets.kallsyms import Kernel, kernel_symbols


def own_names(image: Image) -> Symbols:
    """The symbols of its kallsyms, without sizes; none if it has none."""
    data = image.data.tobytes()

    def address(offset: int) -> int | None:
        for segment in image.segments:
            if segment.kind == PT_LOAD and 0 <= offset - segment.offset < segment.file_size:
                return segment.address + offset - segment.offset
        return None

    def base(offset: int) -> tuple[int]:
        """The word there, as it is once the image has relocated itself."""
        table = image.relocations
        rows = np.flatnonzero(table.relative & (table.address == np.uint64(address(offset) or 0)))
        return (int(table.addend[rows[0]]) if len(rows) else int.from_bytes(data[offset : offset + 8], "little"),)

    found = kernel_symbols(Kernel(data, image.facts, base, address, image.offset_of, image.is_code))
    if found is None:
        return no_symbols()
    return found.symbols
