"""An image that may run elsewhere than it was linked -> addresses of the one place as those of the other.

A hit's own addresses, its callers', are link addresses already (`kinst.runtime.tracing.standalone.record_stacks`); what
its arguments point to is not. Both are understood: an image that moves does so by more than its size.
"""

from kinst.targets.image import Image


class Moved:
    """The place of one image."""

    def __init__(self, image: Image) -> None:
        """It is where it was linked."""
        self._spans = [range(one.address, one.address + one.size) for one in image.segments if one.size]
        self._by = 0

    def move(self, by: int) -> None:
        """Set by how many bytes it has been moved."""
        self._by = by

    def link(self, address: int) -> int:
        """The link address of an address in the running image; others as they are."""
        link = address - self._by
        return link if any(link in span for span in self._spans) else address

    def locate(self, link: int, _site: int) -> int:
        """Where what was linked at an address is now."""
        return link + self._by if any(link in span for span in self._spans) else link
