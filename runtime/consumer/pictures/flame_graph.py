"""Weighted stacks -> a flame graph: one SVG file for any browser, with its own search, zoom and keyboard control.

The width of a box is how much was counted in its function and its callees; callers are below. Without scripts, as in a
document or an image viewer, it is a static picture.
"""

import zlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import BinaryIO, Final

from kinst.rewriter.shell.page import picture_code, picture_head, picture_script
from kinst.rewriter.shell.page_policy import Code
from kinst.runtime.consumer.pictures.flame_tree import Box, boxes
from kinst.runtime.consumer.pictures.folded_stacks import FrameKind, StackDocument, StackReader, Stacks
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation

_LEAST: Final = 2e-5  # part of the whole: a fortieth of a pixel
_ROW: Final = 18  # pixels
_TOP: Final = 92  # of title, what was counted, and search
_BOTTOM: Final = 30  # of the line that describes a frame
_WIDTH: Final = 1200  # pixels that text is cut for until a script knows better
_CHARACTER: Final = 7.25  # pixels
_UNPRINTABLE: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF), 0xFFFD)  # not in XML
_HELP: Final = "Click: zoom. / or the field: search, also by a regular expression. Arrows: walk. Enter: zoom. Esc: all."


class FlameGraph(StackDocument):
    """Implements `document_output.Document`."""

    def __init__(self, output: BinaryIO, reader: StackReader, aggregations: Sequence[Aggregation], title: str) -> None:
        super().__init__(output, reader, aggregations)
        self._title = title
        self._unit = "" if any(one.function is AggregatingFunction.SUM for one in aggregations) else " hits"
        self._what = ", ".join(f"{one.shown} = {one.function.value}()" for one in aggregations)

    def pieces(self, stacks: Stacks) -> Iterator[bytes]:
        """The picture."""
        for piece in self._pieces(stacks):
            yield piece.translate(_UNPRINTABLE).encode("utf-8", "backslashreplace")

    def _pieces(self, stacks: Stacks) -> Iterator[str]:
        found = list(boxes(stacks, _LEAST))
        height = _TOP + _BOTTOM + _ROW * (1 + max(box.depth for box in found))
        yield from self._head(height)
        for box in found:
            yield self._box(box, found[0].weight, height - _BOTTOM - _ROW * (box.depth + 1))
        status = escape(self._description(found[0], 1))
        yield f'<text id="status" x="10" y="{height - 10}" aria-live="polite">{status}</text>\n'
        yield f"{picture_script(flame_graph_code())}</svg>\n"

    def _head(self, height: int) -> Iterator[str]:
        title = escape(self._title)
        yield '<?xml version="1.0" encoding="utf-8"?>\n'
        yield f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{height}" lang="en">\n'
        yield f"<title>{title}</title>\n<desc>Flame graph of {escape(self._what)}. {_HELP}</desc>\n"
        yield picture_head(flame_graph_code())
        yield f'<text class="title" x="10" y="26">{title}</text>\n'
        yield f'<text class="what" x="10" y="48">{escape(self._what)}</text>\n'
        yield (
            '<foreignObject x="0" y="56" width="100%" height="34"><div xmlns="http://www.w3.org/1999/xhtml" id="bar">'
            '<button id="reset" type="button" disabled="disabled">Show all</button>'
            f'<input id="search" type="search" placeholder="Search" title="{_HELP}" aria-label="Search functions"/>'
            "</div></foreignObject>\n"
        )

    def _box(self, box: Box, whole: int, y: int) -> str:
        """A frame with its colour, its position and its description."""
        x, width = (box.start / whole, box.weight / whole) if whole else (0.0, 1.0)
        label = box.frame.text if box.frame.kind is FrameKind.KEY else box.frame.text.rpartition("`")[2]
        kind, style = self._colour(box, width)
        return (
            f'<g class="f {kind}" role="button" tabindex="{0 if box.depth == 0 else -1}"'
            f' style="{style}" data-name="{escape(label)}"'
            f' data-x="{x:.9g}" data-w="{width:.9g}" data-d="{box.depth}">'
            f"<title>{escape(self._description(box, width))}</title>"
            f'<rect x="{100 * x:.6g}%" y="{y}" width="{100 * width:.6g}%" height="{_ROW - 1}" rx="1.5"/>'
            f'<text x="{100 * x:.6g}%" dx="3" y="{y + 13}">{escape(_cut(label, width))}</text></g>\n'
        )

    def _colour(self, box: Box, width: float) -> tuple[str, str]:
        """A frame's class, and its style: here by its name alone."""
        shade = zlib.crc32(box.frame.text.encode("utf-8", "surrogatepass"))
        return box.frame.kind.value, f"--h:{shade % 37 - 18};--l:{(shade >> 8) % 13 - 6}%"

    def _description(self, box: Box, width: float) -> str:
        unit = self._unit.rstrip("s") if box.weight == 1 else self._unit
        return f"{box.frame.text}: {box.weight:,}{unit}, {100 * width:.2f} %"


def _cut(label: str, width: float) -> str:
    room = int((width * _WIDTH - 6) / _CHARACTER)
    if room < 3:
        return ""
    return label if len(label) <= room else label[: room - 1] + "…"


def flame_graph_code() -> Code:
    """The script and the style of every flame graph."""
    return picture_code("kinst.runtime.consumer.pictures", "flame_graph", has_style_attributes=True)
