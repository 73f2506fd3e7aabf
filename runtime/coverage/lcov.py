"""Coverage -> an lcov tracefile (geninfo(1), FILES), which genhtml and the tools of CI services read.

Of each source file: where functions begin (FN) and how often they ran (FNDA), and how often each line did (DA), with
the sums of what there is (FNF, LF) and of what ran (FNH, LH).
"""

from collections.abc import Callable, Iterator

from kinst.runtime.coverage.document import Coverage, CoveredImage
from kinst.runtime.coverage.source_lines import SourceFile, source_files
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.visible import visible

LinesOf = Callable[[CoveredImage], DebugSections | None]  # the debug information of an image; None: it has none


def lcov_lines(coverage: Coverage, lines_of: LinesOf) -> Iterator[str]:
    """The lines of the tracefile. An image without debug information has none."""
    for image in coverage.images:
        debug = lines_of(image)
        for one in () if debug is None else source_files(image, debug):
            yield from _record(one)


def _record(one: SourceFile) -> Iterator[str]:
    yield "TN:"
    yield f"SF:{visible(one.path)}"
    functions: dict[str, tuple[int, int]] = {}
    for line, name, runs in sorted(one.functions):
        before = functions.get(name, (line, 0))
        functions[name] = before[0], before[1] + runs
    shown = [(line, _name(name), runs) for name, (line, runs) in functions.items()]
    yield from (f"FN:{line},{name}" for line, name, _ in shown)
    yield from (f"FNDA:{runs},{name}" for _, name, runs in shown)
    yield f"FNF:{len(shown)}"
    yield f"FNH:{sum(runs > 0 for *_, runs in shown)}"
    yield from (f"DA:{line},{one.lines[line]}" for line in sorted(one.lines))
    yield f"LF:{len(one.lines)}"
    yield f"LH:{sum(count > 0 for count in one.lines.values())}"
    yield "end_of_record"


def _name(name: str) -> str:
    """A comma ends a field."""
    return visible(name).replace(",", ";")
