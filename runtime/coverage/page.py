"""Coverage -> a page for a browser: functions with the part of them that ran, and the source line by line.

The names of source files are the image's, which may be anybody's: only regular files of bounded size are read whose
names are those of source, so that no page gets what else the user can read. Everything is escaped.
"""

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Final

from kinst.rewriter.shell.page import page_file, page_lines
from kinst.runtime.coverage.document import Coverage, CoveredImage, Function
from kinst.runtime.coverage.source_lines import SourceFile, source_files
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.errors import KinstError
from kinst.targets.visible import visible

_FUNCTIONS: Final = 5_000  # that are listed of an image
_FILE: Final = 2 << 20  # bytes of a source file
_SOURCE: Final = 32 << 20  # bytes of all that are shown
_ENDINGS: Final = frozenset(
    [
        *(".c", ".h", ".s", ".asm", ".inc", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp", ".y", ".l"),
        *(".rs", ".go", ".zig", ".d", ".m", ".pas", ".pp", ".adb", ".ads", ".ml"),
    ]
)
_HEAD: Final = "<tr><th>function</th><th>calls</th><th>instructions</th><th></th><th>blocks</th></tr>"


def coverage_page(coverage: Coverage, lines_of: Callable[[CoveredImage], DebugSections | None]) -> Iterator[str]:
    """The lines of the page. `lines_of` finds the debug information of an image; None, or KinstError: it has none."""
    names = ", ".join(visible(image.module) for image in coverage.images) or "no image"
    runs = "" if coverage.runs == 1 else f" in {coverage.runs:,} runs"
    parts = "\n".join(coverage_parts(coverage, lines_of))
    texts = {"title": escape(f"{names}: coverage"), "name": escape(names + runs), "images": parts}
    yield from page_lines("kinst.runtime.coverage", "coverage", texts, {}, more_style=coverage_style())


def coverage_parts(coverage: Coverage, lines_of: Callable[[CoveredImage], DebugSections | None]) -> Iterator[str]:
    """The lines of all images, for a page that has `coverage_style` and shows them in an element of class covered."""
    sources = _Sources()
    for image in coverage.images:
        yield from _image(image, lines_of, sources)


def coverage_style() -> str:
    """How that is shown."""
    return page_file("kinst.runtime.coverage", "covered.css")


def _image(
    image: CoveredImage, lines_of: Callable[[CoveredImage], DebugSections | None], sources: "_Sources"
) -> Iterator[str]:
    ran = sorted(image.ran, key=lambda one: (-_work(one), one.address))
    count = f"{len(ran):,} of {len(image.functions):,} functions ran"
    yield f"<h2>{escape(visible(image.module))} <small>{count}</small></h2>"
    yield f"<table><thead>{_HEAD}</thead><tbody>"
    yield from map(_row, ran[:_FUNCTIONS])
    yield "</tbody></table>"
    if len(ran) > _FUNCTIONS:
        yield f"<p>and {len(ran) - _FUNCTIONS:,} more that ran; .json has all of them</p>"
    try:
        debug = lines_of(image)
    except KinstError as error:
        yield f"<p>no lines of source: {escape(visible(str(error).splitlines()[0]))}</p>"
        return
    if debug is None:
        yield "<p>no lines of source: the image has no debug information that says which there are</p>"
        return
    files = source_files(image, debug)
    shown = [one for one in files if any(one.lines.values())]
    yield f"<h2>Source <small>{len(shown):,} of {len(files):,} files have lines that ran</small></h2>"
    for one in shown:
        yield from _file(one, sources.lines(one.path))


def _work(one: Function) -> int:
    return sum(block.runs * block.instructions for block in one.blocks) or one.runs


def _row(one: Function) -> str:
    blocks = f"{sum(block.runs > 0 for block in one.blocks):,} of {len(one.blocks):,}" if one.blocks else ""
    part = 100 * one.executed // one.instructions if one.instructions else 0
    kind = "" if one.executed == one.instructions else " class=part"
    return (
        f"<tr><th scope=row>{escape(visible(one.name))}</th><td>{one.runs:,}</td>"
        f"<td>{one.executed:,} of {one.instructions:,}</td><td{kind}>{part}%</td><td>{blocks}</td></tr>"
    )


def _file(one: SourceFile, text: list[str] | None) -> Iterator[str]:
    ran = sum(count > 0 for count in one.lines.values())
    title = f"{escape(visible(one.path))} <small>{ran:,} of {len(one.lines):,} lines ran</small>"
    if text is None:
        yield f"<p>{title} <small>and the file is not here to be shown</small></p>"
        return
    if max(one.lines) > len(text):
        title += f" <small>the file here has {len(text):,} lines, and is not the one that was compiled</small>"
    yield f"<details><summary>{title}</summary><pre>"
    yield "".join(_line(content, one.lines.get(number)) for number, content in enumerate(text, 1))
    yield "</pre></details>"


def _line(text: str, count: int | None) -> str:
    shown = escape(visible(text.replace("\t", "        ")))
    if count is None:
        return f"{'':>12}  {shown}\n"
    tag = "s" if count else "u"
    return f"<{tag}>{count:>12,}  {shown}\n</{tag}>"


class _Sources:
    """The source files that are here, up to so many bytes of all."""

    def __init__(self) -> None:
        self._left = _SOURCE

    def lines(self, name: str) -> list[str] | None:
        """The lines of one; None: see `source_text`."""
        text = source_text(name, min(_FILE, self._left))
        self._left -= len(text or "")
        return None if text is None else text.split("\n")


def source_text(name: str, most: int) -> str | None:
    """A file of source, of at most so many bytes; None: it is not here, or is none. A name that is no path from the
    root is from here."""
    path = Path(name)
    try:
        if path.suffix.lower() not in _ENDINGS or not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError):  # a name with a NUL
        return None
    return None if len(content) > most or b"\0" in content else content.decode(errors="backslashreplace")
