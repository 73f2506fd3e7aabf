"""Labels that a kernel's linker script puts around code -> the addresses between them."""

from collections.abc import Iterable

import numpy as np

from kinst.targets.image import Image
from kinst.targets.spans import Spans, united


def labelled_code(image: Image, labels: Iterable[tuple[str, str]]) -> Spans:
    """What lies between some pairs of labels, of those pairs that the image has."""
    pairs = ([image.symbols.address_of(name) for name in names] for names in labels)
    known = [pair for pair in pairs if None not in pair]
    return united(np.array(known, np.uint64).reshape(-1, 2))
