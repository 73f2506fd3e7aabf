"""Two files of coverage -> what kinst-diff --runs and --sum write."""

from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path

from kinst.runtime.coverage.attributing import digest_of
from kinst.runtime.coverage.comparing import compared, json_text, picture, text_lines
from kinst.runtime.coverage.document import CoveredImage
from kinst.runtime.coverage.json_format import read_coverage
from kinst.runtime.coverage.merging import merged
from kinst.runtime.coverage.output_form import form_of
from kinst.runtime.coverage.writing import coverage_bytes
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image


def differing(first: Path, second: Path, form: str) -> tuple[Iterator[str], bool]:
    """The lines that say what differs between two runs, and whether nothing does: text, json, or svg, a picture.

    Raises:
        ImageError: a file is none of coverage.
    """
    one, other = read_coverage(first), read_coverage(second)
    found, names = compared(one, other), (first.name, second.name)
    if form == "svg":
        drawn = b"".join(picture(one, other, f"{second.name}, compared with {first.name}"))
        return iter(drawn.decode("utf-8", "backslashreplace").splitlines()), found.is_same
    lines = iter([json_text(found)]) if form == "json" else text_lines(found, names)
    return lines, found.is_same


def summed(files: Sequence[Path], output: Path) -> Iterator[bytes]:
    """The content of the file that has all runs, one or more, in the format of the output's name. Raises ImageError: as
    `merged`, or there are no lines for lcov; UsageError: the name has no ending that says the format."""
    form = form_of(output)
    return coverage_bytes(reduce(merged, map(read_coverage, files)), form, lines_of)


def lines_of(image: CoveredImage) -> DebugSections:
    """The debug information of the image that ran, if it is where it was. Raises ImageError: it is not."""
    path = Path(image.path)
    if not path.is_file():
        raise ImageError(f"{image.path}: the image that ran is not there, and lines need its debug information")
    found = open_image(path)
    if digest_of(found) != image.digest:
        raise ImageError(f"{image.path}: not the image that ran, of which lines need the debug information")
    return find_debug(found)
