"""A difference of two images -> one HTML page, with everything that it needs: original and patched side by side.

The page gets its sites as compressed JSON, since there may be a million, and draws those in view. The object in it, in
which each text is a number in `texts`:

    {"texts": [...], "functions": [[name, address], ...],
     "sites": [[function, address, verdict, trampoline, place, [line, ...], [trampoline's line, ...]], ...]}

A line is [address, bytes, text] if nothing changed there, else [address, bytes, text, bytes now, text now]. `place` is
the site's own line. Addresses are hexadecimal texts; those of lines are numbers, from the site's or trampoline's on.
"""

from collections.abc import Iterator
from html import escape
from typing import Any, Final

from kinst.rewriter.diffing.diff import Diff
from kinst.rewriter.diffing.diff_listing import SiteListing, listings
from kinst.rewriter.diffing.diff_report import IDENTICAL, json_value
from kinst.rewriter.patching.report import patch_line
from kinst.rewriter.shell.page import page_lines
from kinst.rewriter.shell.progress import Progress, silent
from kinst.rewriter.shell.wording import counted
from kinst.targets.instruction import Verdict
from kinst.targets.manifest.packed import Manifest

_WORDS: Final = {Verdict.COPY: "trampoline", Verdict.EMULATE: "emulated", Verdict.DEFER: "deferred"}


def diff_page_lines(diff: Diff, *, progress: Progress = silent) -> Iterator[str]:
    """The lines of the page."""
    texts = {"title": escape(f"{diff.patched.path.name}: what changed")}
    texts |= {name: "".join(text) for name, text in _parts(diff).items()}
    yield from page_lines("kinst.rewriter.diffing", "diff", texts, _data(diff, progress))


def _parts(diff: Diff) -> dict[str, Iterator[str]]:
    """The parts of the page that need no script."""
    value = json_value(diff)
    return {
        "files": _files(diff),
        "verdict": _verdict(diff),
        "changes": _changes(value),
        "unexplained": _unexplained(value),
    }


def _files(diff: Diff) -> Iterator[str]:
    for name, image in (("original", diff.original), ("patched", diff.patched)):
        path, size = escape(str(image.path)), counted(len(image.data), "byte")
        yield f'<span><b>{name}</b> <span title="{path}">{escape(image.path.name)}</span> <small>{size}</small></span>'


def _verdict(diff: Diff) -> Iterator[str]:
    if not diff.is_explained:
        yield f'<strong class="bad">{counted(diff.unexplained_count, "difference")} unexplained</strong>'
    elif diff.manifest is None:
        yield f'<strong class="good">{IDENTICAL}</strong>'
    else:
        yield '<strong class="good">every difference is explained</strong>'


def _changes(value: dict[str, Any]) -> Iterator[str]:
    for change in value["changes"]:
        yield f"<tr><th scope=row>{escape(change['what'])}</th><td>{escape(change['text'])}</td></tr>\n"
    for patch in value["patches"]:
        yield f"<tr><th scope=row>patch</th><td><code>{escape(patch_line(patch))}</code></td></tr>\n"


def _unexplained(value: dict[str, Any]) -> Iterator[str]:
    for one in value["unexplained"]:
        text = one["text"] or f"{one['found'][:64]}, expected {one['expected'][:64]}"
        where = f"{one['offset']:#x} {escape(one['where'])}"
        yield f"<tr class=bad><th scope=row>UNEXPLAINED</th><td>{where}: <code>{escape(text)}</code></td></tr>\n"
    more = value["unexplained_count"] - len(value["unexplained"])
    if more:
        yield f"<tr class=bad><th scope=row>UNEXPLAINED</th><td>and {more:,} more</td></tr>\n"


# -- sites ------------------------------------------------------------------------------------------------------------


class _Texts(dict[str, int]):
    """Texts and their numbers: the same instructions come again and again."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def _data(diff: Diff, progress: Progress) -> dict[str, Any]:
    """The object of the module's docstring."""
    if diff.manifest is None:
        return {"texts": [], "functions": [], "sites": [], "back": False}
    return _value(diff, diff.manifest, progress)


def _value(diff: Diff, manifest: Manifest, progress: Progress) -> dict[str, Any]:
    texts, rows = _Texts(), []
    numbers: dict[int, int] = {}  # of functions, in the order in which they come
    with progress("page", len(manifest.sites)) as done:
        for listing in listings(diff, manifest):
            function = numbers.setdefault(listing.function, len(numbers))
            rows.append(_row(listing, function, texts))
            done(1)
    addresses = manifest.functions["address"]
    functions = [[manifest.function_name(row), f"{int(addresses[row]):x}"] for row in numbers]
    back = manifest.standalone is None  # whether the tracer takes over after a displaced instruction
    return {"texts": list(texts), "functions": functions, "sites": rows, "back": back}


def _row(listing: SiteListing, function: int, texts: _Texts) -> list[Any]:
    lines = []
    for one in listing.lines:
        line = [one.address - listing.address, texts[one.before.hex(" ")], texts[one.before_text]]
        if one.after != one.before:
            line += [texts[one.after.hex(" ")], texts[one.after_text]]
        lines.append(line)
    start = listing.trampoline
    elsewhere = [[one.address - start, texts[one.text]] for one in listing.trampoline_lines]
    verdict = texts[_WORDS[listing.verdict]]
    return [function, f"{listing.address:x}", verdict, f"{start:x}" if start else "", listing.place, lines, elsewhere]
