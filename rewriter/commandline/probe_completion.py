"""A probe description as far as it is typed, and the image before it -> completions, field by field.

If there are many functions, the beginnings of their names are offered (`vfs_`, `sys_`), up to the next underscore: a
kernel has more than a shell can show.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from kinst.targets.errors import KinstError
from kinst.targets.probe import PROVIDERS

if TYPE_CHECKING:
    Items = list[CompletionItem[str]]
else:
    Items = list  # click 8.1's items have no parameter

Value = tuple[str, str]  # and `_WHOLE` if it is complete, else `_OPEN`

_WHOLE: Final = "plain"
_OPEN: Final = "open"
_MOST: Final = 400  # functions that are offered by their whole names
_NAMES: Final = {"fbt": ("entry", "return"), "kinst": ("entry", "return"), "dtrace": ("BEGIN", "END", "ERROR")}
_SEPARATORS: Final = re.compile(r".*[\s,;}]", re.DOTALL)


def complete_description(ctx: click.Context, _param: click.Parameter, text: str) -> Items:
    """Of descriptions with commas between them: the last one."""
    begun, comma, last = text.rpartition(",")
    return _items(begun + comma, _description(ctx, last))


def complete_program(ctx: click.Context, _param: click.Parameter, text: str) -> Items:
    """Of a D program: descriptions, but nothing inside clauses and predicates."""
    if text.count("{") != text.count("}") or text.count("/") % 2:
        return []
    found = _SEPARATORS.match(text)
    begun = found[0] if found else ""
    return _items(begun, _description(ctx, text[len(begun) :]))


def complete_function(ctx: click.Context, _param: click.Parameter, text: str) -> Items:
    """For the name of a function."""
    return [CompletionItem(name, type=kind) for name, kind in _functions(ctx, text)]


def _items(begun: str, values: Iterable[Value]) -> Items:
    return [CompletionItem(begun + value, type=kind) for value, kind in values]


def _description(ctx: click.Context, text: str) -> list[Value]:
    provider, *rest = text.split(":")
    match rest:
        case []:
            return [(f"{one}::", _OPEN) for one in PROVIDERS if one.startswith(provider)]
        case [""] if provider in PROVIDERS:
            return [(f"{text}:", _OPEN)]
        case [module, function] if provider in _NAMES:
            return [(f"{provider}:{module}:{value}", kind) for value, kind in _in_function(ctx, provider, function)]
        case [module, function, name] if provider in _NAMES:
            known = [one for one in _NAMES[provider] if one.startswith(name)]
            return [(f"{provider}:{module}:{function}:{one}", _WHOLE) for one in known]
        case _:
            return []


def _in_function(ctx: click.Context, provider: str, begun: str) -> list[Value]:
    """Functions with a colon, after which the name comes; those names where only one function is left."""
    if provider == "dtrace":
        return [(":", _OPEN)]
    found = _functions(ctx, begun)
    if len(found) == 1 and found[0][1] == _WHOLE:
        every = [""] if provider == "kinst" else []  # kinst::f: is every instruction of f
        return [(f"{found[0][0]}:{name}", _WHOLE) for name in (*every, *_NAMES[provider])]
    return [(f"{value}:" if kind == _WHOLE else value, _OPEN) for value, kind in found]


def _functions(ctx: click.Context, begun: str) -> list[Value]:
    """Functions of the image, or what many of them begin with."""
    image = _image(ctx)
    if image is None:
        return []
    from kinst.rewriter.function_names import functions_beginning  # which needs numpy

    others = (ctx.params.get("symbols"), ctx.params.get("debug_file"))
    try:
        found = functions_beginning(begun, image, others)
    except KinstError:
        return []  # the command itself will report it
    return [(name, _WHOLE) for name in found] if len(found) <= _MOST else _grouped(found, len(begun))


def _grouped(names: list[str], begun: int) -> list[Value]:
    """The names up to the next underscore; where these are too many, up to the next letter."""
    groups: dict[Value, None] = {}
    for name in names:
        end = name.find("_", begun + 1) + 1
        groups[(name[:end], _OPEN) if 0 < end < len(name) else (name, _WHOLE)] = None
    if len(groups) <= _MOST:
        return list(groups)
    return [(one, _OPEN) for one in dict.fromkeys(name[: begun + 1] for name in names)]


def _image(ctx: click.Context) -> Path | None:
    """The image that the command line names so far."""
    given: Any = ctx.params.get("image") or next(iter(ctx.params.get("words") or ()), None)
    return Path(given) if given and Path(given).is_file() else None
