"""Probe names and an image -> which instruction serves which probe, what was refused and why; an outcome for each
name."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.exclusions import ANCHOR, exclusion
from kinst.rewriter.naming.inline_lookup import DebugInlines
from kinst.rewriter.naming.inline_probes import (
    Expansion,
    Inlined,
    Inlines,
    fbt_kind,
    inlined,
    is_inline,
    only_inlined,
)
from kinst.rewriter.naming.numbering import Numbering, numbering
from kinst.rewriter.naming.refusals import Refusals, join_refusals, no_refusals, summary
from kinst.rewriter.naming.remembered import Remembered, remembered
from kinst.rewriter.naming.select import Names, Selection
from kinst.rewriter.naming.sites import (
    Decoded,
    Rows,
    Sites,
    decoded,
    entry_sites,
    kinst_sites,
    kinst_sites_at,
    return_sites,
)
from kinst.rewriter.naming.static_sites import (
    StaticRecords,
    matching_static,
    static_functions,
    static_records,
    static_sites,
)
from kinst.rewriter.naming.unknown_names import no_kind, no_module, nothing
from kinst.rewriter.program import Program, instructions_of, refuse_excluded
from kinst.rewriter.shell.progress import Progress, silent
from kinst.targets.columns import is_in, union, unique
from kinst.targets.errors import KinstError, ProbeError
from kinst.targets.functions.found import Evidence, Functions, invented_name
from kinst.targets.instruction import Instructions, Reason
from kinst.targets.manifest.packed import PROBE_FORM, ProbeKind
from kinst.targets.probe import ProbeName, is_glob
from kinst.targets.spans import covered
from kinst.targets.static_probes import StaticProbe
from kinst.targets.values import dataclass

_UNNAMED: Final = 4096  # bytes of a function that is known by an address only
_FEW: Final = 8  # instruction starts that a message lists
_NONE: Final = np.zeros(0, np.intp)
_NOTHING: Final = Selection(_NONE, np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Choice:
    """(instruction, probe) pairs as columns. `names` are numbers of `Names`, the functions of the probes; for static
    probes they are rows of `Resolution.static`."""

    instructions: NDArray[np.intp]
    names: NDArray[np.int64]
    kinds: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.instructions)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one probe name. If there is an `error`, nothing is chosen."""

    name: ProbeName
    functions: NDArray[np.intp]  # rows of the functions that the name chose, refused or not
    choice: Choice
    refusals: Refusals
    error: KinstError | None
    expansion: Expansion | None = None  # of a name that means inlined copies

    @property
    def total(self) -> int:
        """Sites that the name matches, refused ones included."""
        return len(self.choice) + len(self.refusals)

    def note(self) -> str:
        """``kinst::f*: 3 of 40 refused: ...``; empty if nothing was."""
        if not len(self.refusals) and not (self.expansion is not None and self.expansion.damage):
            return ""
        text = summary(self.refusals, self.total) if self.expansion is None else self.expansion.note()
        return f"{self.name}: {text}"

    def summary(self) -> str:
        """The same, but of inlined copies even if nothing was refused."""
        return self.note() if self.expansion is None else f"{self.name}: {self.expansion.note()}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """All names resolved against one program, which has a function for each address that a name or the user gave."""

    program: Program
    code: Decoded
    names: Names
    outcomes: tuple[Outcome, ...]
    numbering: Numbering
    static: tuple[StaticProbe, ...]  # all that the image has
    rows: Rows  # the functions that names chose
    found: Instructions  # theirs, also if the functions are left alone

    def all_instructions(self, progress: Progress) -> Instructions:
        """The instructions of all functions: decoded only if the names did not choose all."""
        rows = np.arange(len(self.program.functions))
        return self.found if np.array_equal(self.rows, rows) else instructions_of(self.program, rows, progress)

    def wholly_among(self, addresses: NDArray[np.uint64]) -> Iterator[tuple[ProbeName, NDArray[np.uint64]]]:
        """The names all of whose sites are at some addresses, and these sites, ascending."""
        for outcome in self.outcomes if len(addresses) else ():
            sites = unique(self.code.instructions.address[outcome.choice.instructions])
            if len(sites) and np.isin(sites, addresses).all():
                yield outcome.name, sites

    @property
    def refusals(self) -> Refusals:
        """The refusals of all names, each site once for each reason."""
        return join_refusals([outcome.refusals for outcome in self.outcomes])


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The parts of a probe name. `offset` is set if it is a fixed one; `static` are rows of the image's static
    probes."""

    name: ProbeName
    kinds: tuple[ProbeKind, ...]
    offset: int | None
    selection: Selection
    static: Rows
    error: KinstError | None = None
    inlined: Inlined | Remembered | None = None


def resolve(
    program: Program,
    names: Sequence[ProbeName],
    *,
    include_excluded: bool = False,
    inlines: Inlines | None = None,
    records: StaticRecords | None = None,
    progress: Progress = silent,
) -> Resolution:
    """Find the sites of probe names.

    Args:
        program: the unpatched image.
        names: what to probe. A name that matches nothing has an outcome with an error; nothing is raised for it.
        include_excluded: probe what `exclusions` would leave alone.
        inlines: where inlined functions are looked up; else in the image's own debug information.
        records: what the image says about its static probes, if that was read already.
        progress: notified while code is decoded.
    """
    inlines = inlines or DebugInlines(program.image)
    program, static = with_static(program, records)
    # Identifiers count the image's own functions, and so are fixed before functions are added for addresses that only
    # this command line names: an identifier means the same probe in every command.
    numbers = numbering(program.functions, program.image.code_regions, static)
    vouched = program.functions.address
    forced = program.forced[:, 0].tolist()
    program = with_functions_at(program, [*forced, *(name.address for name in names if name.address is not None)])
    # Every name is taken apart before anything is decoded: what is decoded is the union of all functions, once.
    known = Names(program.functions)
    wanted = [_take_apart(program, known, name, static, inlines) for name in names]
    chosen = [_rows(program, static, one) for one in wanted]
    rows = unique(np.concatenate([np.zeros(0, np.intp), *chosen]))
    found = instructions_of(program, rows, progress)
    found = _refuse_unvouched(program, found, vouched)
    code = decoded(program.functions, found if include_excluded else refuse_excluded(program, found))
    outcomes = tuple(_outcome(program, code, one, static) for one in wanted)
    return Resolution(program, code, known, outcomes, numbers, static, rows, found)


def _refuse_unvouched(program: Program, found: Instructions, vouched: NDArray[np.uint64]) -> Instructions:
    """Refuse instructions of functions that only an address names, where symbols and FDEs cover nearly all other code
    and so vouch against it, unless the user says that it is code. `vouched` are the starts of the other functions."""
    address = program.functions.address
    named = ~is_in(address, vouched) & covered(program.functions.strict, address)
    rows = named[found.function] & ~covered(program.forced, found.address)
    return found.refuse(rows, Reason.UNVOUCHED) if rows.any() else found


def with_static(program: Program, records: StaticRecords | None = None) -> tuple[Program, tuple[StaticProbe, ...]]:
    """The program with a function around each static probe of the image, and those probes."""
    records = records or static_records(program.image)
    program = with_functions_at(program, records.addresses)
    return program, records.probes(program.functions)


def numbering_of(program: Program) -> Numbering:
    """The identifiers of all probes that a program can have."""
    program, static = with_static(program)
    return numbering(program.functions, program.image.code_regions, static)


def _rows(program: Program, static: tuple[StaticProbe, ...], wanted: _Wanted) -> Rows:
    """The rows of the functions that a name chose, or that hold what it chose."""
    rows = union(wanted.selection.rows, static_functions(program.functions, static, wanted.static))
    return rows if wanted.inlined is None else union(rows, wanted.inlined.rows(program.functions))


def _take_apart(
    program: Program, known: Names, name: ProbeName, static: tuple[StaticProbe, ...], inlines: Inlines
) -> _Wanted:
    try:
        if is_inline(name):
            return _inlined(program, known, name, inlines)
        chosen = matching_static(static, name, program.image.module)
        # A static probe may be named by a module of its own; any other name must mean this image.
        if not len(chosen):
            _check_module(program, name)
        # `kinst::f:` and the like mean this image; with another module only static probes are left.
        kinds = _kinds(name, static, chosen) if _is_module(program, name) else (ProbeKind.SDT,)
        if kinds == (ProbeKind.SDT,):
            return _Wanted(name, kinds, None, _NOTHING, chosen)
        if name.address is not None:
            return _at_address(program, known, name, name.address, kinds, chosen)
        return _Wanted(name, kinds, name.offset, _select(program, known, name, inlines), chosen)
    except KinstError as error:
        return _Wanted(name, (), None, _NOTHING, _NONE, error=error)


def _inlined(program: Program, known: Names, name: ProbeName, inlines: Inlines) -> _Wanted:
    _check_module(program, name)
    found = _looked_up(program, known, name, inlines)
    kinds = (fbt_kind(name),) if len(found.fbt) else ()
    return _Wanted(name, kinds, None, found.fbt, _NONE, inlined=found)


def _looked_up(program: Program, known: Names, name: ProbeName, inlines: Inlines) -> Inlined | Remembered:
    """A name of inlined copies, looked up in debug information; without that, among what an earlier rewriting found."""
    try:
        return inlined(program, known, name, inlines)
    except ProbeError:
        found = remembered(inlines.remembered, name, program.functions, known)
        if found is None:
            raise
        return found


def _check_module(program: Program, name: ProbeName) -> None:
    """The module must be the image's, with or without .ko (kinst writes it, FBT does not), or `kernel`, as on a live
    system."""
    if not _is_module(program, name):
        raise no_module(name, program.image.module)


def _is_module(program: Program, name: ProbeName) -> bool:
    return name.matches_image(program.image.module)


def _kinds(name: ProbeName, static: tuple[StaticProbe, ...], chosen: Rows) -> tuple[ProbeKind, ...]:
    kinds = []
    # kinst's probes are named by offsets: `kinst::f:entry` means inlined copies, and was dispatched before.
    if name.matches_provider("kinst") and (not name.name or is_glob(name.name) or name.offset is not None):
        kinds.append(ProbeKind.KINST)
    if name.matches_provider("fbt"):
        kinds += [kind for kind, (_, text) in PROBE_FORM.items() if text and name.matches_name(text)]
    if len(chosen):
        kinds.append(ProbeKind.SDT)
    if kinds:
        return tuple(kinds)
    raise no_kind(name, static)


def _select(program: Program, known: Names, name: ProbeName, inlines: Inlines) -> Selection:
    pattern = name.function
    if not pattern or pattern == "*":
        return known.select_all()
    selection = known.select_matching(name.matches_function) if is_glob(pattern) else known.select_exact(pattern)
    if len(selection):
        return selection
    # Only a literal name says so: a glob that matches nothing is no hint that an inlined function was meant.
    inline = None if is_glob(pattern) else only_inlined(name, inlines)
    if inline is not None:
        raise inline
    nearest = known.nearest(pattern)
    hint = f"; the nearest are {', '.join(nearest)}" if nearest else ""
    raise ProbeError(f"{name}: no function {pattern!r} in {program.image.module}{hint}")


def _at_address(
    program: Program, known: Names, name: ProbeName, address: int, kinds: tuple[ProbeKind, ...], static: Rows
) -> _Wanted:
    """`kinst::0xADDRESS:` is the instruction there, `:N` the one N bytes on; `fbt::0xADDRESS:` the function there."""
    row = program.functions.row_at(address)
    if row is None:
        raise ProbeError(f"{name}: {address:#x} is not code{place_of(program, address)}")
    start = int(program.functions.address[row])
    if ProbeKind.KINST not in kinds and ProbeKind.SDT not in kinds and address != start:
        inside = f"{program.functions.names[row]}+{address - start:#x}"
        raise ProbeError(f"{name}: no function starts at {address:#x}, which is {inside}")
    # fbt probes a function at its start only.
    if address != start:
        kinds = tuple(kind for kind in kinds if kind in (ProbeKind.KINST, ProbeKind.SDT))
    return _Wanted(name, kinds, address - start + (name.offset or 0), known.select_row(row), static)


def place_of(program: Program, address: int) -> str:
    """``: it is in .data``: what holds an address that is no code, to follow a message."""
    for section in program.image.sections:
        if section.address and 0 <= address - section.address < section.size:
            return f": it is in {section.name}"
    return ": no section holds it" if program.image.sections else ""


def with_functions_at(program: Program, addresses: Sequence[int]) -> Program:
    """The program with a function `sub_<address>` for every address that is code of no known function.

    Each ends where the next function begins, after at most `_UNNAMED` bytes.
    """
    found: list[tuple[int, int]] = []
    for address in sorted(set(addresses)):
        size = unnamed_size(program, address)
        # An address inside the function just added is in it already.
        if size is not None and (not found or sum(found[-1]) <= address):
            found.append((address, size))
    return replace(program, functions=_with_unnamed(program.functions, found)) if found else program


def unnamed_size(program: Program, address: int) -> int | None:
    """The size of the function that an address alone names; None: it is no code, or belongs to a known function."""
    functions, regions = program.functions, program.image.code_regions
    last = bisect_right(regions, address, key=lambda one: one.address) - 1
    end = regions[last].address + regions[last].size if last >= 0 else 0
    if address >= end or functions.row_at(address) is not None:
        return None
    row = int(np.searchsorted(functions.address, np.uint64(address)))
    following = [int(functions.address[row])] if row < len(functions) else []
    return min([address + _UNNAMED, end, *following]) - address


def _with_unnamed(functions: Functions, found: Sequence[tuple[int, int]]) -> Functions:
    """The functions with more of them, given by address and size, ascending."""
    addresses, sizes = np.array(found, np.uint64).T
    at = np.searchsorted(functions.address, addresses)
    names: list[str] = []
    start = 0
    for row, (address, _) in zip(at.tolist(), found, strict=True):
        names += (*functions.names[start:row], invented_name(address))
        start = row
    return Functions(
        np.insert(functions.address, at, addresses),
        np.insert(functions.size, at, sizes),
        np.insert(functions.evidence, at, np.uint8(Evidence.ADDRESS)),
        (*names, *functions.names[start:]),
        {row + int(np.searchsorted(at, row, "right")): texts for row, texts in functions.aliases.items()},
        functions.strict,
    )


def _outcome(program: Program, code: Decoded, wanted: _Wanted, static: tuple[StaticProbe, ...]) -> Outcome:
    none = Choice(np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0, np.uint8))
    rows = _rows(program, static, wanted)
    if wanted.error is not None:
        return Outcome(wanted.name, rows, none, no_refusals(), wanted.error)
    parts, refusals = [none], [no_refusals()]
    expanded = None if wanted.inlined is None else wanted.inlined.expansion(code, wanted.name)
    if expanded is not None:
        parts.append(_chosen(code, expanded))
        refusals.append(expanded.refusals)
    for kind in wanted.kinds:
        if kind is ProbeKind.SDT:
            sites = static_sites(code, program.image, static, wanted.static)
            names = sites.position
        else:
            sites = _sites(code, wanted, kind)
            names = wanted.selection.names[sites.position]
        parts.append(Choice(sites.instructions, names, np.full(len(names), kind, np.uint8)))
        refusals.append(sites.refusals)
    choice = Choice(*(np.concatenate([getattr(part, name) for part in parts]) for name in Choice.__slots__))
    refused = join_refusals(refusals)
    error = None if len(choice) else ProbeError(f"{wanted.name}: {_why_nothing(program, code, wanted, rows, refused)}")
    return Outcome(wanted.name, rows, choice, refused, error, expanded)


def _chosen(code: Decoded, expanded: Expansion) -> Choice:
    """The sites in copies: kinst probes of the functions that hold them."""
    at = np.array(sorted(site.row for site in expanded.sites), np.intp)
    names = code.instructions.function[at].astype(np.int64)
    return Choice(at, names, np.full(len(at), ProbeKind.KINST, np.uint8))


def _sites(code: Decoded, wanted: _Wanted, kind: ProbeKind) -> Sites:
    rows = wanted.selection.rows
    match kind:
        case ProbeKind.FBT_ENTRY:
            return entry_sites(code, rows)
        case ProbeKind.FBT_RETURN:
            return return_sites(code, rows)
        case ProbeKind.KINST if wanted.offset is not None:
            return kinst_sites_at(code, rows, wanted.offset)
        case ProbeKind.KINST:
            sites = kinst_sites(code, rows)
            return _with_names(code, wanted.name, sites) if is_glob(wanted.name.name) else sites
        case _:
            raise AssertionError("static probes have sites of their own")


def _with_names(code: Decoded, name: ProbeName, sites: Sites) -> Sites:
    """Only the sites whose offset, written in decimal, matches the glob in the name field."""
    found = code.instructions
    offsets = found.address - code.functions.address[found.function]
    keep = np.array([name.matches_name(str(offset)) for offset in offsets[sites.instructions].tolist()], np.bool_)
    refused = sites.refusals
    starts = (refused.address - code.functions.address[refused.function]).tolist()
    refused_too = np.array([name.matches_name(str(offset)) for offset in starts], np.bool_)
    return Sites(sites.instructions[keep], sites.position[keep], refused.take(refused_too))


def _why_nothing(program: Program, code: Decoded, wanted: _Wanted, rows: Rows, refused: Refusals) -> str:
    """Why a name matches nothing, with the nearest thing that would do."""
    if len(refused):
        return _why_refused(program, code, refused)
    if wanted.offset is not None and ProbeKind.KINST in wanted.kinds:
        return why_not_there(code, wanted.offset, rows)
    if wanted.kinds == (ProbeKind.FBT_RETURN,) and len(rows) == 1:
        return f"{code.functions.names[int(rows[0])]} has no return: it never gives control back by itself"
    return nothing(wanted.name)


def _why_refused(program: Program, code: Decoded, refused: Refusals) -> str:
    functions = program.functions
    name = functions.names[int(refused.function[0])]
    if refused.reason[0] == Reason.EXCLUDED_FUNCTION:
        rule = exclusion(name, program.image.facts)
        return f"{name} is excluded: {rule}, and this image has {ANCHOR} (--include-excluded probes it all the same)"
    address = int(refused.address[0])
    place = f"{name}+{address - int(functions.address[int(refused.function[0])])} ({address:#x})"
    if len(refused) > 1:
        return f"nothing left: {summary(refused, len(refused))}; the first is {place}{code.around(address)}"
    return f"{place} is refused: {refused.text(0)}{code.around(address)}"


def why_not_there(code: Decoded, offset: int, rows: Rows) -> str:
    """Why no instruction begins at an offset into some functions, and where the nearest ones begin."""
    if len(rows) > 1:
        return f"none of {len(rows)} functions has an instruction at offset {offset}"
    row = int(rows[0])
    name, size = code.functions.names[row], int(code.functions.size[row])
    if offset >= size:
        return f"offset {offset} is past the end: {name} is {size} bytes long"
    starts = code.starts(row)
    before = int(np.searchsorted(starts, offset, "right")) - 1
    if before < 0:
        return f"{name} has no instruction that decodes"
    near = ", ".join(map(str, starts[max(before - 1, 0) : before + 3].tolist()))
    if len(starts) > _FEW:
        return f"offset {offset} is inside the instruction at {starts[before]}; the nearest start at {near}"
    near = ", ".join(map(str, starts.tolist()))
    return f"offset {offset} is inside the instruction at {starts[before]}; instructions start at {near}"
