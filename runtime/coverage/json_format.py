"""Coverage <-> the lines of a JSON file, which docs/formats.md describes. What is read is checked: a file may lie."""

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kinst.runtime.coverage.call_order import PIECE, CallOrder
from kinst.runtime.coverage.document import Block, Coverage, CoveredImage, Function, Granularity
from kinst.targets.errors import ImageError

FORMAT: Final = "kinst-coverage"
VERSION: Final = 1
_MOST: Final = 1 << 30  # bytes of a file
_WORD: Final = 1 << 64
_BLOCK: Final = ("offset", "size", "index", "instructions", "runs")


def json_lines(coverage: Coverage) -> Iterator[str]:
    """The lines of the file: one for each function."""
    head = {"format": FORMAT, "version": VERSION, "of": coverage.granularity.value, "counts": True}
    head |= {"runs": coverage.runs, "outside": coverage.outside, "ordered": coverage.has_order, "block": list(_BLOCK)}
    yield json.dumps(head)[:-1] + ', "images": ['
    for number, image in enumerate(coverage.images):
        yield from _image(image, is_last=number == len(coverage.images) - 1)
    yield '], "calls": ['
    for number, order in enumerate(coverage.calls):
        yield from _order(order, is_last=number == len(coverage.calls) - 1)
    yield "]}"


def _order(order: CallOrder, *, is_last: bool) -> Iterator[str]:
    """The calls of a CPU: a line for each piece."""
    yield json.dumps({"cpu": order.cpu, "count": order.count})[:-1] + ', "pieces": ['
    for number, piece in enumerate(order.pieces):
        yield f'"{base64.b64encode(piece).decode()}"' + ("," if number < len(order.pieces) - 1 else "")
    yield "]}" + ("" if is_last else ",")


def _image(image: CoveredImage, *, is_last: bool) -> Iterator[str]:
    head = {name: getattr(image, name) for name in ("module", "path", "machine", "digest", "base", "end", "entry")}
    others = {name: [list(one) for one in getattr(image, name)] for name in ("elsewhere", "unknown")}
    yield json.dumps(head | others)[:-1] + ', "functions": ['
    for number, one in enumerate(image.functions):
        found: dict[str, Any] = {"name": one.name, "address": one.address, "size": one.size}
        if one.rank:
            found |= {name: getattr(one, name) for name in ("instructions", "executed", "runs", "rank")}
            found["blocks"] = [[getattr(block, name) for name in _BLOCK] for block in one.blocks]
        yield json.dumps(found) + ("," if number < len(image.functions) - 1 else "")
    yield "]}" + ("" if is_last else ",")


def read_coverage(path: Path) -> Coverage:
    """The coverage in a JSON file.

    Raises:
        ImageError: it is none, or what it says cannot be.
        OSError: it cannot be read.
    """
    if path.stat().st_size > _MOST:
        raise ImageError(f"{path}: larger than a coverage file can be (1 GiB)")
    return coverage_of(path.read_bytes(), str(path))


def coverage_of(content: bytes, name: str) -> Coverage:
    """The coverage in a JSON document; `name` is for errors. Raises ImageError."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise ImageError(f"{name}: not JSON: kinst-run --coverage FILE.json writes what is read here") from None
    try:
        return _coverage(found)
    except (_LieError, KeyError, TypeError) as error:
        what = f"{error}" if isinstance(error, _LieError) else "a part is missing, or of another kind"
        raise ImageError(f"{name}: not a coverage file, or damaged: {what}") from None


class _LieError(Exception):
    """What a file says cannot be."""


def _coverage(found: Any) -> Coverage:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _LieError(f'it has no "format": "{FORMAT}"')
    if found["version"] != VERSION:
        raise _LieError(f"its version is {found['version']!r:.20}, and this reads {VERSION}")
    try:
        granularity = Granularity(found["of"])
    except ValueError:
        raise _LieError(f"of {found['of']!r:.20}") from None
    images = tuple(_read_image(one) for one in _list(found["images"]))
    calls = tuple(map(_read_order, _list(found.get("calls", []))))
    if len({one.cpu for one in calls}) < len(calls):
        raise _LieError("a CPU has its calls twice")
    counts, is_ordered = (_number(found["runs"]), _number(found["outside"])), found.get("ordered", True)
    if not isinstance(is_ordered, bool):
        raise _LieError("ordered is true or false")
    return Coverage(granularity, counts[0], images, counts[1], calls, is_ordered)


def _read_order(found: Any) -> CallOrder:
    """What is in the pieces is seen when they are compared."""
    try:
        pieces = tuple(base64.b64decode(piece, validate=True) for piece in _list(found["pieces"]))
    except (binascii.Error, ValueError):
        raise _LieError("calls are no base64") from None
    count = _number(found["count"])
    if -(-count // PIECE) != len(pieces):
        raise _LieError(f"{count} calls in {len(pieces)} pieces")
    return CallOrder(_number(found["cpu"]), count, pieces)


def _read_image(found: Any) -> CoveredImage:
    texts = [_text(found[name]) for name in ("module", "path", "machine", "digest")]
    base, end, entry = (_number(found[name]) for name in ("base", "end", "entry"))
    functions = tuple(map(_function, _list(found["functions"])))
    before = 0
    for one in functions:
        if one.address < before:
            raise _LieError(f"function {one.name!r:.40} overlaps the one before")
        before = one.address + one.size
    elsewhere = tuple((_number(at), _number(size), _runs(runs)) for at, size, runs in _lists(found["elsewhere"], 3))
    unknown = tuple((_number(at), _number(size)) for at, size in _lists(found.get("unknown", []), 2))
    if any(at + size > _WORD for at, size, *_ in (*elsewhere, *unknown)):
        raise _LieError("code goes on past the last address")
    if not base <= end:
        raise _LieError("an image ends before it begins")
    return CoveredImage(texts[0], texts[1], texts[2], texts[3], base, end, entry, functions, elsewhere, unknown)


def _function(found: Any) -> Function:
    name, address, size = _text(found["name"]), _number(found["address"]), _number(found["size"])
    if address + size > _WORD:
        raise _LieError(f"function {name!r:.40} goes on past the last address")
    if "rank" not in found:
        return Function(name, address, size, 0, 0, 0, 0, ())
    instructions, executed, rank = (_number(found[key]) for key in ("instructions", "executed", "rank"))
    runs = _runs(found["runs"])
    blocks = tuple(_blocks(found["blocks"], name))
    is_whole = not blocks or sum(block.instructions for block in blocks) == instructions
    if any(block.offset + block.size > size for block in blocks[-1:]) or not is_whole or executed > instructions:
        raise _LieError(f"the blocks of {name!r:.40} are not its own")
    if not rank:
        raise _LieError(f"{name!r:.40} ran, and has no rank")
    return Function(name, address, size, instructions, executed, runs, rank, blocks)


def _blocks(found: Any, name: str) -> Iterator[Block]:
    end = index = 0
    for row in _lists(found, len(_BLOCK)):
        block = Block(*[_number(word) for word in row])
        if block.offset < end or block.index < index or not block.instructions or not block.size:
            raise _LieError(f"the blocks of {name!r:.40} do not follow each other")
        _runs(block.runs)
        end, index = block.offset + block.size, block.index + block.instructions
        yield block


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise _LieError("a list is none")
    return found


def _lists(found: Any, length: int) -> Sequence[list[Any]]:
    rows = _list(found)
    if any(not isinstance(row, list) or len(row) != length for row in rows):
        raise _LieError(f"a row has not {length} numbers")
    return rows


def _text(found: Any) -> str:
    if not isinstance(found, str) or len(found) > 1 << 16:
        raise _LieError("a name is no text")
    return found


def _number(found: Any) -> int:
    if type(found) is not int or not 0 <= found < _WORD:
        raise _LieError(f"{found!r:.20} is no number from 0 to 2**64 - 1")
    return found


def _runs(found: Any) -> int:
    """A count: two of them fit in 63 bits."""
    if _number(found) >= 1 << 62:
        raise _LieError(f"{found} runs")
    return _number(found)
