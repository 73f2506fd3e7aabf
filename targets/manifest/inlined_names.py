"""What a manifest keeps of names that mean inlined copies, as values and as JSON.

It is kept so that such names can be probed where the debug information is not at hand.
"""

from collections.abc import Sequence
from typing import Any, Final

from kinst.targets.debuginfo.inlined import Range
from kinst.targets.manifest.values import address_of, number_of, text_of_value
from kinst.targets.values import dataclass

_MOST_COPIES: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class InlinedPlace:
    """An instruction at which copies are entered or left; `staying`: where control may go without leaving. `file` and
    `line` are those of the first copy's call."""

    address: int
    function: str
    staying: tuple[Range, ...]
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class InlinedName:
    """``kinst::function:name``. `own` are address and name of the functions that fbt's probes are for."""

    function: str
    name: str
    copies: int
    functions: int  # that hold them
    own: tuple[tuple[int, str], ...]
    places: tuple[InlinedPlace, ...]


def inlined_values(names: Sequence[InlinedName]) -> list[list[Any]]:
    """The names as values for `json.dumps`; texts that many places share stand once, in front of them."""
    return [_value(one) for one in names]


def _value(one: InlinedName) -> list[Any]:
    texts: dict[str, int] = {}
    places = [
        [
            place.address,
            texts.setdefault(place.function, len(texts)),
            texts.setdefault(place.file, len(texts)),
            place.line,
            *(bound for span in place.staying for bound in span),
        ]
        for place in one.places
    ]
    return [one.function, one.name, one.copies, one.functions, one.own, list(texts), places]


def inlined_names(values: Sequence[Sequence[Any]]) -> tuple[InlinedName, ...]:
    """The names that a manifest's JSON has. Raises ValueError, TypeError or LookupError: they are damaged."""
    return tuple(map(_name, values))


def _name(value: Sequence[Any]) -> InlinedName:
    function, name, copies, functions, own, texts, places = value
    known = list(map(text_of_value, texts))
    return InlinedName(
        text_of_value(function),
        text_of_value(name),
        number_of(copies, _MOST_COPIES),
        number_of(functions, _MOST_COPIES),
        tuple((address_of(address), text_of_value(text)) for address, text in own),
        tuple(_place(place, known) for place in places),
    )


def _place(value: Sequence[Any], texts: Sequence[str]) -> InlinedPlace:
    address, function, file, line, *bounds = map(address_of, value)
    staying = tuple(zip(bounds[::2], bounds[1::2], strict=True))
    return InlinedPlace(address, texts[function], staying, texts[file], line)


def joined(earlier: Sequence[InlinedName], fresh: Sequence[InlinedName]) -> tuple[InlinedName, ...]:
    """All names of both; of a name in both, what was found now."""
    return tuple({(one.function, one.name): one for one in (*earlier, *fresh)}.values())
