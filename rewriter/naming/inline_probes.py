"""kinst::f:entry and kinst::f:return for a function that was inlined -> the instructions at which its copies are
entered and left.

libdtrace (dt_sugar.c) turns such a description into a kinst probe at an offset into the caller for each copy, and into
fbt's probe for a function that has code of its own; a function that has both gets both. So it is here. A copy is
entered at its DW_AT_entry_pc, and left by each instruction of it after which control may be outside (`inline_exits`); a
conditional one fires only when control does leave. One address is one site, however many copies share it.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from kinst.rewriter.naming.control_flow import ControlFlows
from kinst.rewriter.naming.inline_exits import Exit, common, exits, rows_between
from kinst.rewriter.naming.refusals import Refusals, summary
from kinst.rewriter.naming.select import Names, Selection
from kinst.rewriter.naming.sites import Decoded, Rows
from kinst.rewriter.program import Program
from kinst.rewriter.shell.wording import counted
from kinst.targets.columns import unique
from kinst.targets.debuginfo.inlined import InlinedCopy, InlineFunction, Matching, Range
from kinst.targets.errors import KinstError, ProbeError
from kinst.targets.functions.found import Functions
from kinst.targets.instruction import Flow, Reason, Verdict
from kinst.targets.manifest.inlined_names import InlinedName
from kinst.targets.manifest.packed import ProbeKind
from kinst.targets.probe import ProbeName, is_glob
from kinst.targets.values import dataclass

_KINDS: Final = {"entry": ProbeKind.FBT_ENTRY, "return": ProbeKind.FBT_RETURN}
_CLONE: Final = re.compile(r"(\.(isra|constprop)(\.\d+)*)+")  # clones: whole functions under another name
_CONDITIONAL: Final = (Flow.BRANCH, Flow.INDIRECT_JUMP)


class Inlines(Protocol):
    """What debug information says about inlined functions. `kinst.rewriter.naming.inline_lookup` implements it."""

    def find(self, name: str) -> Sequence[InlineFunction]:
        """Every definition of an inline function of that name. Raises KinstError if there is no debug information."""
        ...

    def find_matching(self, pattern: str) -> Matching:
        """Every definition of inline functions whose names match a glob. Raises KinstError if there is no debug
        information."""
        ...

    def names(self, pattern: str) -> Sequence[str]:
        """Names of inline functions that match a glob."""
        ...

    @property
    def remembered(self) -> Sequence[InlinedName]:
        """Names that the image was patched with, for which no debug information is needed."""
        ...


@dataclass(frozen=True, slots=True)
class InlineSite:
    """Where copies are entered or left. `copies` share the address; `staying`: link addresses to which control may go
    without leaving a copy."""

    row: int  # of the instruction, in `Decoded`
    address: int
    function: str  # the inlined one
    copies: tuple[InlinedCopy, ...]
    staying: tuple[Range, ...] = ()
    knows_arguments: bool = True  # whether debug information says what the copies' parameters are


@dataclass(frozen=True, slots=True)
class Expansion:
    """The result for a name: sites in copies, each address once, in the order of the debug information."""

    name: ProbeName
    sites: tuple[InlineSite, ...]
    copies: int  # that have code
    functions: int  # that hold them
    refusals: Refusals
    fbt: Selection  # functions of the name that have code of their own
    damage: tuple[str, ...] = ()

    def note(self) -> str:
        """``3 copies in 2 functions``, what was refused, how many functions of the name fbt has, and which debug
        information could not be read."""
        return ", ".join(part for part in (self._found(), _left_out(self.damage)) if part)

    def _found(self) -> str:
        own = f"{counted(len(self.fbt), 'function')} with code of {'its' if len(self.fbt) == 1 else 'their'} own"
        if not self.copies:
            return own
        copies = f"{_copies(self.copies)} in {counted(self.functions, 'function')}"
        refused = summary(self.refusals, len(self.sites) + len(self.refusals))
        return ", ".join(part for part in (copies, refused, own if len(self.fbt) else "") if part)


def _left_out(damage: Sequence[str]) -> str:
    """``without 2 damaged units, the first: vmlinux: .debug_info: the unit at 0x7f: damaged``."""
    if not damage:
        return ""
    return f"without {counted(len(damage), 'damaged unit')}{', the first' if len(damage) > 1 else ''}: {damage[0]}"


def _copies(count: int) -> str:
    return f"{count:,} {'copy' if count == 1 else 'copies'}"


@dataclass(frozen=True, slots=True)
class Inlined:
    """The functions that a name matches: inlined copies, and those that have code of their own."""

    found: tuple[InlineFunction, ...]
    fbt: Selection
    damage: tuple[str, ...] = ()  # units of debug information that were left out

    @property
    def copies(self) -> Iterator[tuple[InlineFunction, InlinedCopy]]:
        """The copies that have code."""
        return ((one, copy) for one in self.found for copy in one.copies if copy.ranges)

    def rows(self, functions: Functions) -> Rows:
        """The rows of the functions that must be decoded."""
        lows = [low for _, copy in self.copies for low in (copy.entry, *(low for low, _ in copy.ranges))]
        return unique(_rows_at(functions, lows))

    def expansion(self, code: Decoded, name: ProbeName) -> Expansion:
        """The sites of a name. `code` holds the functions that `rows` named."""
        return expansion(code, name, self)


def is_inline(name: ProbeName) -> bool:
    """Whether a name means inlined copies: the provider must be spelled out, as in DTrace."""
    return name.provider == "kinst" and name.name in _KINDS and name.address is None


def fbt_kind(name: ProbeName) -> ProbeKind:
    """What the name means for functions that have code of their own."""
    return _KINDS[name.name]


def inlined(program: Program, known: Names, name: ProbeName, inlines: Inlines) -> Inlined:
    """Look a name up.

    Raises:
        ProbeError: nothing has that name; or no copy of it has code.
    """
    try:
        if is_glob(name.function) or not name.function:
            matching = inlines.find_matching(name.function or "*")
        else:
            matching = Matching(tuple(inlines.find(name.function)), ())
    except KinstError as error:
        raise ProbeError(f"{name}: {error}") from error
    found = matching.found
    result = Inlined(found, _with_own_code(known, name, found), matching.damage)
    if not len(result.fbt) and next(result.copies, None) is None:
        left_out = _left_out(result.damage)
        raise ProbeError(f"{name}: {_why_nothing(program, known, name, found, inlines)}{left_out and ', '}{left_out}")
    return result


def _with_own_code(known: Names, name: ProbeName, found: Sequence[InlineFunction]) -> Selection:
    if is_glob(name.function) or not name.function:
        return known.select_matching(name.matches_function)
    exact = known.select_exact(name.function)
    if len(exact) or not any(one.is_out_of_line for one in found):
        return exact
    clone = re.compile(re.escape(name.function) + _CLONE.pattern)
    return known.select_matching(lambda text: clone.fullmatch(text) is not None)


def _why_nothing(
    program: Program, known: Names, name: ProbeName, found: Sequence[InlineFunction], inlines: Inlines
) -> str:
    if found:
        declared = next((one.declaration for one in found if one.declaration.file), None)
        where = f" ({declared.file}:{declared.line})" if declared is not None else ""
        return f"{name.function}{where} is marked as inline, but has no code: neither copies nor a function of its own"
    nearest = known.nearest(name.function)
    if not nearest:
        nearest = difflib.get_close_matches(name.function, inlines.names("*"))
    hint = f"; the nearest are {', '.join(nearest)}" if nearest else ""
    return f"no function {name.function!r}, inlined or not, in {program.image.module}{hint}"


def only_inlined(name: ProbeName, inlines: Inlines) -> KinstError | None:
    """Why kinst::f: or fbt::f:entry is an error where f exists, but not as a function."""
    if not name.matches_provider("kinst") and not name.matches_provider("fbt"):
        return None
    try:
        found = bool(inlines.find(name.function))
    except KinstError:
        return None
    if not found:
        return None
    why = "its copies have no offsets of their own" if name.provider == "kinst" else "it has no code of its own"
    return ProbeError(
        f"{name}: {name.function} is inlined: {why}; "
        f"kinst::{name.function}:entry and kinst::{name.function}:return are where its copies are entered and left"
    )


# -- sites ------------------------------------------------------------------------------------------------------------


def expansion(code: Decoded, name: ProbeName, found: Inlined) -> Expansion:
    """The sites of a name. `code` holds the functions that `Inlined.rows` named."""
    builder = _Builder(code)
    ways = _left if name.name == "return" else _entered
    for function, copy in found.copies:
        builder.add(function, copy, ways)
    return Expansion(
        name,
        tuple(builder.sites.values()),
        builder.copies,
        len(builder.holders),
        builder.refusals(),
        found.fbt,
        found.damage,
    )


Ways = Callable[[ControlFlows, Sequence[int], InlinedCopy], list[Exit]]


class _Builder:
    """Gathers sites by address."""

    def __init__(self, code: Decoded) -> None:
        self._code = code
        self._flows = ControlFlows(code)
        self.sites: dict[int, InlineSite] = {}
        self.copies = 0
        self.holders: set[int] = set()
        self._refused: dict[int, tuple[int, Reason]] = {}  # address -> row of the function, reason

    def add(self, function: InlineFunction, copy: InlinedCopy, ways: Ways) -> None:
        """The sites of one copy."""
        self.copies += 1
        rows = _holders(self._code.functions, copy)
        if not rows:
            self._refuse(copy.entry, Reason.NO_FUNCTION)
            return
        self.holders.add(rows[0])
        found = ways(self._flows, rows, copy)
        # A copy that is entered nowhere cannot be probed; one that is never left (it ends in BUG) has no return, which
        # is no error.
        if ways is _entered and not found:
            self._refuse(copy.entry, Reason.NO_BOUNDARY)
        for one in found:
            self._add(function, copy, one)

    def _add(self, function: InlineFunction, copy: InlinedCopy, way: Exit) -> None:
        found = self._code.instructions
        address, reason = int(found.address[way.row]), Reason(int(found.reason[way.row]))
        # The runtime learns where a conditional jump goes only if it emulates it.
        is_unseen = found.verdict[way.row] == Verdict.COPY and found.flow[way.row] in _CONDITIONAL and way.staying
        if found.verdict[way.row] == Verdict.REFUSE or is_unseen:
            self._refuse(address, Reason.UNSEEN_TAIL_CALL if is_unseen else reason)
            return
        same = self.sites.get(address)
        if same is None:
            self.sites[address] = InlineSite(way.row, address, function.name, (copy,), way.staying)
        elif copy not in same.copies:
            # Leaving one of the copies is enough: only what stays in all of them does not fire.
            staying = common(same.staying, way.staying)
            self.sites[address] = replace(same, copies=(*same.copies, copy), staying=staying)

    def _refuse(self, address: int, reason: Reason) -> None:
        functions = self._code.functions
        row = max(int(np.searchsorted(functions.address, np.uint64(address), "right")) - 1, 0)
        self._refused[address] = row, reason

    def refusals(self) -> Refusals:
        """All that was refused, in address order."""
        addresses = sorted(self._refused)
        pairs = [self._refused[address] for address in addresses]
        return Refusals(
            np.array(addresses, np.uint64),
            np.array([row for row, _ in pairs], np.int32),
            np.array([reason for _, reason in pairs], np.uint8),
            np.zeros(len(pairs), np.uint8),
        )


def _entered(flows: ControlFlows, _rows: Sequence[int], copy: InlinedCopy) -> list[Exit]:
    row = rows_between(flows.code, copy.entry, copy.entry + 1)
    return [Exit(row.start)] if row else []


def _left(flows: ControlFlows, rows: Sequence[int], copy: InlinedCopy) -> list[Exit]:
    return exits(flows, rows, copy)


def _holders(functions: Functions, copy: InlinedCopy) -> list[int]:
    """Rows of the functions that hold a copy: first the one with the entry."""
    rows = _rows_at(functions, [copy.entry, *(low for low, _ in copy.ranges)])
    if not len(rows) or not _holds(functions, int(rows[0]), copy.entry):
        # Debug information and symbols may disagree about the caller: both are searched.
        return []
    caller = functions.row_at(copy.caller_address) if copy.caller else None
    return list(dict.fromkeys([*([] if caller is None else [caller]), *rows.tolist()]))


def _holds(functions: Functions, row: int, address: int) -> bool:
    return 0 <= address - int(functions.address[row]) < int(functions.size[row])


def _rows_at(functions: Functions, addresses: Sequence[int]) -> Rows:
    """The rows of the functions that hold addresses; addresses in no function are left out."""
    at = np.array(addresses, np.uint64)
    rows = np.searchsorted(functions.address, at, "right") - 1
    inside = (rows >= 0) & (at - functions.address[rows] < functions.size[rows])
    return rows[inside]
