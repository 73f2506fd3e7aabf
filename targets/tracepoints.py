"""Linux' tracepoints, from what the kernel keeps for itself -> their names, the places in code that ask for them, and
what they call.

    struct tracepoint         __tracepoint_<name>: its name, then its static key, ...
    struct jump_entry         each place: a nop that becomes a jump to a block out of line while the key is on
    struct trace_event_call   those at __start_ftrace_events: in each a pointer to its class and one to its tracepoint
    struct trace_event_class  first a pointer to the name of the trace system, as under /sys/kernel/tracing/events

A block makes the arguments and calls __traceiter_<name> with them, or by way of the static call __SCT__tp_func_<name>,
whose function is the first word of __SCK__tp_func_<name>.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.linux import JUMP_LABEL_LAYOUTS, JUMP_LABELS, JumpLabelLayout
from kinst.targets.columns import unique
from kinst.targets.elf.header import FileKind
from kinst.targets.elf.symbols import SHN_UNDEF, Symbols
from kinst.targets.image import Image
from kinst.targets.kernels.kernel_tables import record_addresses, records_of, table_place, text_at, words_at
from kinst.targets.static_probes import Callees, is_name
from kinst.targets.values import dataclass

_TRACEPOINT: Final = "__tracepoint_"
FUNCTION: Final = "__traceiter_"
_TRAMPOLINE, _CALL_KEY = "__SCT__tp_func_", "__SCK__tp_func_"
_EVENTS: Final = "_ftrace_events", ("__start_ftrace_events", "__stop_ftrace_events")
_EVENT_WORDS: Final = 8  # of a trace_event_call, in which both pointers are
_FLAGS: Final = np.uint64(3)  # of a key's address
_LARGEST: Final = 1 << 12  # bytes of a tracepoint


@dataclass(frozen=True, slots=True)
class Tracepoint:
    """One tracepoint. Addresses are link addresses."""

    name: str
    system: str  # empty: it is no event of a trace system
    places: tuple[tuple[int, int], ...]  # where its key is tested, and where the jump leads while it is on
    callees: Callees


def tracepoints(image: Image) -> tuple[Tracepoint, ...]:
    """All tracepoints that code of the image tests for, by name. None without symbols: nothing else names them."""
    table = None if image.kind is FileKind.REL else table_place(image, *JUMP_LABELS)
    if table is None:
        return ()
    records = _records(image.symbols)
    if not records:
        return ()
    starts = np.array([start for start, _, _ in records], np.uint64)
    sizes = np.array([size for _, size, _ in records], np.uint64)
    places = _places(image, table, starts, sizes)
    systems = _systems(image, starts)
    called = {text: _named(image.symbols, text) for text in (FUNCTION, _TRAMPOLINE, _CALL_KEY)}
    found = []
    for row, (start, size, name) in enumerate(records):
        functions = (called[text].get(name, 0) for text in (FUNCTION, _TRAMPOLINE))
        callees = Callees(start, size, tuple(one for one in functions if one), called[_CALL_KEY].get(name, 0))
        if row in places and callees.functions and is_name(name):
            found.append(Tracepoint(name, systems.get(start, ""), tuple(places[row]), callees))
    return tuple(sorted(found, key=lambda one: one.name))


def _named(symbols: Symbols, prefix: str) -> dict[str, int]:
    """Addresses of the symbols with a prefix, by the rest of their names."""
    rows = symbols.rows_beginning(prefix.encode())
    rows = rows[symbols.section[rows] != SHN_UNDEF]
    names = (name.removeprefix(prefix) for name in symbols.names(rows))
    return dict(zip(names, symbols.address[rows].tolist(), strict=True))


def _records(symbols: Symbols) -> list[tuple[int, int, str]]:
    """(address, size, name) of each tracepoint, ascending and disjoint."""
    rows = symbols.rows_beginning(_TRACEPOINT.encode())
    sizes = _sizes(symbols, rows)
    # A size from kallsyms is the distance to the next symbol, which may be far: then the key could not be told from
    # others.
    are_fit = (symbols.section[rows] != SHN_UNDEF) & (sizes <= _LARGEST) & (sizes > 0)
    rows, sizes = rows[are_fit], sizes[are_fit]
    names = [name.removeprefix(_TRACEPOINT) for name in symbols.names(rows)]
    every = sorted(zip(symbols.address[rows].tolist(), sizes.tolist(), names, strict=True))
    found: list[tuple[int, int, str]] = []
    for start, size, name in every:
        if not found or found[-1][0] + found[-1][1] <= start:
            found.append((start, size, name))
    return found


def _sizes(symbols: Symbols, rows: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The sizes of symbols; of those from kallsyms, which has none, the distance to the next. 0 if there is no next."""
    every = unique(symbols.address)
    following = np.searchsorted(every, symbols.address[rows], "right")
    to_next = every[np.minimum(following, len(every) - 1)] - symbols.address[rows]
    return np.where(symbols.size[rows] > 0, symbols.size[rows], to_next)


def _places(
    image: Image, table: tuple[int, int], starts: NDArray[np.uint64], sizes: NDArray[np.uint64]
) -> Mapping[int, list[tuple[int, int]]]:
    """By row of a tracepoint: (nop, target) of the records whose key is in it."""
    layout = next((one for one in JUMP_LABEL_LAYOUTS if table[1] % one.size == 0), None)
    if layout is None:
        return {}
    code, target, key = _jump_labels(image, table, layout)
    # A record's key points to the static key inside struct tracepoint: whose range holds it says which tracepoint it
    # is.
    row = np.searchsorted(starts, key, "right") - 1
    inside = (row >= 0) & (key - starts[row] < sizes[row])
    found: dict[int, list[tuple[int, int]]] = {}
    columns = (column[inside].tolist() for column in (row, code, target))
    for one, nop, block in sorted(set(zip(*columns, strict=True))):
        found.setdefault(one, []).append((nop, block))
    return found


def _jump_labels(image: Image, place: tuple[int, int], layout: JumpLabelLayout) -> tuple[NDArray[np.uint64], ...]:
    """Columns: the instruction, the target, and the key without its flags."""
    rows, starts = records_of(image, place, layout.size)
    code, target, key = (
        record_addresses(image, rows, starts, field) for field in (layout.code, layout.target, layout.key)
    )
    return code, target, key & ~_FLAGS


def _systems(image: Image, starts: NDArray[np.uint64]) -> dict[int, str]:
    """Trace systems by the address of a tracepoint."""
    place = table_place(image, *_EVENTS)
    if place is None:
        return {}
    pointers = np.uint64(place[0]) + np.arange(place[1] // 8, dtype=np.uint64) * np.uint64(8)
    words = words_at(image, words_at(image, pointers, 1)[:, 0], _EVENT_WORDS)
    # The layout of struct trace_event_call differs between versions: a word that is a tracepoint is the one, and a word
    # that leads to a name is the class.
    is_record = np.isin(words, starts)
    classes = unique(words[~is_record])
    names = words_at(image, classes, 1)[:, 0].tolist()
    systems = {one: text_at(image, name) or "" for one, name in zip(classes.tolist(), names, strict=True)}
    found: dict[int, str] = {}
    for row, known in zip(words.tolist(), is_record.tolist(), strict=True):
        record = next((word for word, is_one in zip(row, known, strict=True) if is_one), 0)
        system = next((systems[word] for word in row if is_name(systems.get(word, ""))), "")
        if record and system:
            found.setdefault(record, system)
    return found
