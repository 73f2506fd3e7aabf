"""The plan of a standalone image -> that image without a file, for a machine in this process."""

from collections.abc import Iterator
from dataclasses import replace

from kinst.rewriter.planning.plan import Plan
from kinst.targets.elf.header import PF_R, PF_W, PF_X, PT_LOAD
from kinst.targets.elf.sections import Segment
from kinst.targets.image import Image


def with_segment(plan: Plan) -> Image:
    """The original with the added segment, filled with zeros."""
    image, place = plan.image, plan.placement
    if not place.size:
        return image
    where = (len(image.data), place.address, place.load_address, 0, place.size, 1)
    return replace(image, segments=(*image.segments, Segment(len(image.segments), PT_LOAD, PF_R | PF_W | PF_X, *where)))


def contents(plan: Plan) -> Iterator[tuple[int, bytes]]:
    """What is written to memory then: link addresses and bytes."""
    if plan.placement.size:
        yield plan.placement.address, plan.trampolines.tobytes()
    jumps, code, start = plan.manifest.jumps, plan.manifest.jump_code, 0
    for address, size in zip(jumps["address"].tolist(), jumps["size"].tolist(), strict=True):
        yield address, code[start : start + size]
        start += size
