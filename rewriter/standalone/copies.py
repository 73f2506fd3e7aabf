"""An image -> whether it may copy itself elsewhere, and leave behind what was added to it."""

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest


def may_copy_itself(image: Image) -> bool:
    """Whether an image has what one needs that runs from a copy of itself: relocations that it applies itself. Most
    that have them do so where they were loaded."""
    return not is_hosted(image) and bool(image.relocations.relative.any())


def is_behind(image: Image, manifest: Manifest) -> bool:
    """Whether trampolines are outside what the image may copy: those in the middle of it move along."""
    start = manifest.trampolines[0]
    own = (one for one in image.segments if one.kind == PT_LOAD and one.address != start)
    return start >= max((one.address + one.size for one in own), default=0)
