"""What is known about an inline function -> the output of inlinecall(1), as values for JSON and as text.

inlinecall(1) is FreeBSD's: for each definition a line with the place of its declaration, and for each range of each
copy a line with a TAB before each of range, place of the call, and caller. What is not known is left out, but its TAB
stays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kinst.targets.debuginfo.inlined import InlinedCopy, InlineFunction

_RANGE: Final = {"low": int, "high": int, "caller": str}
_COPY: Final = {
    "call_file": str, "call_line": int, "caller": str, "caller_address": int, "entry": int, "ranges": [_RANGE],
}  # fmt: skip
_FUNCTION: Final = {"name": str, "file": str, "line": int, "out_of_line": bool, "copies": [_COPY]}
# What `inlinecall_values` makes: the members of objects, the elements of lists, and the types of everything else.
SHAPE: Final = [_FUNCTION]

CallerOf = Callable[[int], tuple[str, int]]  # the function that holds an address: name and start


def inlinecall_values(functions: Iterable[InlineFunction], caller_of: CallerOf) -> list[dict[str, Any]]:
    """What `--format json` prints. A copy may have ranges in several functions, such as f and f.cold: the caller is
    each range's own."""
    return [
        {
            "name": function.name,
            "file": function.declaration.file,
            "line": function.declaration.line,
            "out_of_line": function.is_out_of_line,
            "copies": [_copy(copy, caller_of) for copy in function.copies],
        }
        for function in functions
    ]


def _copy(copy: InlinedCopy, caller_of: CallerOf) -> dict[str, Any]:
    return {
        "call_file": copy.call.file,
        "call_line": copy.call.line,
        "caller": copy.caller,
        "caller_address": copy.caller_address,
        "entry": copy.entry,
        "ranges": [{"low": low, "high": high, "caller": caller_of(low)[0]} for low, high in copy.ranges],
    }


def inlinecall_lines(values: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The output as lines of text."""
    for function in values:
        yield _place(function["file"], function["line"])
        for copy in function["copies"]:
            call = _place(copy["call_file"], copy["call_line"])
            for one in copy["ranges"]:
                caller = f"{one['caller']}()" if one["caller"] else ""
                yield f"\t[{one['low']:#x} - {one['high']:#x}]\t{call}\t{caller}"


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if file else ""
