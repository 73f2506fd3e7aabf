"""A program and what the user wants to write into it -> a patch of whole instructions, or why there can be none."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.resolve import place_of, why_not_there, with_functions_at
from kinst.rewriter.naming.select import Names
from kinst.rewriter.naming.sites import decoded
from kinst.rewriter.patching.covering import Code
from kinst.rewriter.patching.request import PatchRequest
from kinst.rewriter.program import Program, instructions_of, with_patches
from kinst.rewriter.shell.wording import counted
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import KinstError, PatchError
from kinst.targets.instruction import Reason
from kinst.targets.patch import Patch
from kinst.targets.values import dataclass

_FEW: Final = 8  # candidates that a message lists
_KEPT: Final = 4096  # characters of what the user wrote that the manifest keeps

Encoder = Callable[[Program, PatchRequest, int], bytes]  # the third is the address


def add_patches(
    program: Program, requests: Sequence[PatchRequest], sites: NDArray[np.void], encode: Encoder, *, force: bool
) -> Program:
    """The program with more patches. A probe on what was patched fires before the patch's instruction; what is probed
    cannot be patched.

    Args:
        program: what it has so far.
        requests: what is wanted.
        sites: SITE records of probes that the image has already.
        encode: gives the bytes of a request at an address.
        force: a patch may extend beyond the end of its function.

    Raises:
        KinstError: the first request that cannot be met, and why.
    """
    if program.image.kind is FileKind.REL:
        raise PatchError(f"{program.image.path}: a module that is not linked has no addresses: it cannot be patched")
    code, patches = Code(program), list(program.patches)
    for request in requests:
        try:
            patches.append(_patch(code, request, sites, encode, patches, force=force))
        except KinstError as error:
            error.args = (f"--patch {request.text}: {error}",)
            raise
    return with_patches(program, patches)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a patch begins: in a function that has an instruction there."""

    program: Program
    row: int
    address: int
    name: str  # as the user calls it

    @property
    def remaining(self) -> int:
        """Bytes from here to the end of the function."""
        functions = self.program.functions
        return int(functions.address[self.row]) + int(functions.size[self.row]) - self.address


def _patch(
    code: Code,
    request: PatchRequest,
    sites: NDArray[np.void],
    encode: Encoder,
    patches: Sequence[Patch],
    *,
    force: bool,
) -> Patch:
    program, place = code.program, _found(code.program, request)
    new = request.code or encode(program, request, place.address)
    # Whole instructions are replaced: what is left of one that is cut would run as other instructions.
    end = code.end_of(place.address, len(new))
    size = end - place.address
    if size > place.remaining and not force:
        raise PatchError(
            f"{counted(len(new), 'byte')} do not fit: {place.name} has {place.remaining:,} to the end of its function "
            "(--force writes on)"
        )
    _check_free(code, place, end, sites, patches)
    _check_whole(place, new)
    original = program.original.read(place.address, size)
    text = request.text if len(request.text) <= _KEPT else f"{request.text[:_KEPT]}..."
    return Patch(place.address, original, new + _nops(program, size - len(new)), text)


def _found(program: Program, request: PatchRequest) -> _Place:
    if request.address is None:
        row = _named(program, request)
        address = int(program.functions.address[row]) + request.offset
    else:
        address = request.address
        program = with_functions_at(program, [address])
        at = program.functions.row_at(address)
        if at is None:
            raise PatchError(f"{address:#x} is not code{place_of(program, address)}")
        row = at
    code = decoded(program.functions, instructions_of(program, np.array([row])))
    offset = address - int(program.functions.address[row])
    if offset not in code.starts(row):
        raise PatchError(why_not_there(code, offset, np.array([row])))
    return _Place(program, row, address, request.place)


def _named(program: Program, request: PatchRequest) -> int:
    names, base = Names(program.functions), request.base
    rows = np.unique(names.select_exact(base).rows)
    if len(rows) == 1:
        return int(rows[0])
    if not len(rows):
        nearest = names.nearest(base)
        hint = f"; the nearest are {', '.join(nearest)}" if nearest else ""
        raise PatchError(f"no function {base!r} in {program.image.module}{hint}")
    places = [f"{address:#x}" for address in program.functions.address[rows[:_FEW]].tolist()]
    more = " and more" if len(rows) > _FEW else ""
    raise PatchError(f"{len(rows)} functions are called {base!r}: name one by its address, {', '.join(places)}{more}")


def _check_free(code: Code, place: _Place, end: int, sites: NDArray[np.void], patches: Sequence[Patch]) -> None:
    """Nothing but the image's own code is there, and nobody else writes to it."""
    for patch in patches:
        if place.address < patch.end and patch.address < end:
            raise PatchError(f"{place_name(place.program, patch.address)} is patched already: {patch.text}")
    starts = sites["address"]
    # A site's original bytes are in the manifest already, and would not be those of the patch.
    probed = starts[(starts < np.uint64(end)) & (starts + sites["size"] > np.uint64(place.address))]
    if len(probed):
        name = place_name(place.program, int(probed[0]))
        raise PatchError(f"{name} is probed already: patch the image first, then put probes into it")
    written = code.written(place.address, end)
    if written is not None:
        reason, resumes = written
        raise PatchError(f"{place.name} is refused: {reason.text}{_resumption(place, resumes)}")


def _resumption(place: _Place, address: int) -> str:
    """``; f+0x9 comes after it``, if the function goes on there."""
    functions = place.program.functions
    return f"; {place_name(place.program, address)} comes after it" if functions.row_at(address) == place.row else ""


def _check_whole(place: _Place, code: bytes) -> None:
    """The new code must be whole instructions by itself, else what follows would be read as part of it."""
    found = place.program.dissector.dissect(
        np.frombuffer(code, np.uint8), place.address, np.array([[0, len(code)]], np.int64)
    )
    if int(found.size.sum()) != len(code) or (found.reason == Reason.UNDECODABLE).any():
        raise PatchError(f"{code[:16].hex(' ')}{' ...' * (len(code) > 16)} are not whole instructions")


def _nops(program: Program, size: int) -> bytes:
    """`size` bytes that do nothing, in as few instructions as possible."""
    nops, parts = program.image.facts.sized_nops, b""
    # The largest first: one long nop decodes faster than many short ones, and disassembles as one line.
    for one in sorted(nops, reverse=True):
        parts += nops[one] * ((size - len(parts)) // one)
    return parts


def place_name(program: Program, address: int) -> str:
    """``function+0x10``, the function alone where it begins, or the address where no function is."""
    row = program.functions.row_at(address)
    if row is None:
        return f"{address:#x}"
    offset = address - int(program.functions.address[row])
    return f"{program.functions.names[row]}+{offset:#x}" if offset else program.functions.names[row]


def wrong_patches(program: Program) -> Iterator[str]:
    """A sentence for each patch that `add_patches` could not have made of the original."""
    code = Code(with_patches(program, ()))
    for patch in program.patches:
        name = place_name(program, patch.address)
        if program.original.read(patch.address, len(patch.original)) != patch.original:
            yield f"other bytes at {name}, which is patched"
        elif not _is_possible(code, patch):
            yield f"no whole instructions at {name}, which is patched"


def _is_possible(code: Code, patch: Patch) -> bool:
    try:
        end = code.end_of(patch.address, len(patch.code))
    except PatchError:
        return False
    return end == patch.end and code.written(patch.address, end) is None
