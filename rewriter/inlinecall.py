"""What is known of an inline function -> the output of inlinecall(1), as text or JSON.

inlinecall(1) is FreeBSD's: for each definition a line with the place of its declaration, and for each range of each
copy a line with a TAB before each of range, place of the call and caller. What is not known is left out, its TAB kept.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kinst.targets.debuginfo.inlined import InlinedCopy, InlineFunction, SourceLine

CallerOf = Callable[[int], tuple[str, int]]  # the function that holds an address: name and start


def inlinecall_lines(functions: Iterable[InlineFunction], caller_of: CallerOf) -> Iterator[str]:
    """The text. A copy may have ranges in several functions, such as f and f.cold: the caller is each range's own."""
    for function in functions:
        yield _place(function.declaration)
        for copy in function.copies:
            for low, high in copy.ranges:
                caller = caller_of(low)[0]
                yield f"\t[{low:#x} - {high:#x}]\t{_place(copy.call)}\t{f'{caller}()' if caller else ''}"


def _place(line: SourceLine) -> str:
    return f"{line.file}:{line.line}" if line.file else ""


def inlinecall_values(functions: Iterable[InlineFunction], caller_of: CallerOf) -> list[dict[str, Any]]:
    """The same as values for JSON, with where copies are entered."""
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
