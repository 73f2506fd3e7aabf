"""An original and a patched image -> every changed byte explained, or named as unexplained.

The patched file is made again from the original and the manifest alone: every trampoline is derived again from the
original bytes, and every header is laid out again. Whatever differs from the result is unexplained, wherever it is.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.claims import wrong_claims
from kinst.rewriter.derive import site_instructions
from kinst.rewriter.diffing.container_diff import wrong_files
from kinst.rewriter.diffing.places import Places
from kinst.rewriter.naming.refusals import no_refusals
from kinst.rewriter.patched_bytes import placed
from kinst.rewriter.planning.layout import Layout, Piece, lay_out
from kinst.rewriter.planning.plan import Plan, instruction_bytes, make_trampolines
from kinst.rewriter.planning.slots import CHUNK, NOWHERE, Placement
from kinst.rewriter.program import Program, open_program
from kinst.rewriter.shell.progress import Progress, silent
from kinst.rewriter.standalone.factory import Generated
from kinst.rewriter.standalone.plan import plan_again, written
from kinst.rewriter.writing.write import overwritten, patched_code
from kinst.targets.elf.header import PT_LOAD, SHT_SYMTAB
from kinst.targets.elf.sections import Section
from kinst.targets.errors import ImageError, ManifestError
from kinst.targets.image import Image
from kinst.targets.instruction import Instructions
from kinst.targets.manifest.packed import SECTION, Manifest, find_manifest
from kinst.targets.values import dataclass

_BLOCK: Final = 1 << 23
_GAP: Final = 8  # equal bytes that do not split a range of unexplained ones
_LIMIT: Final = 1000  # unexplained ranges that are described; all are counted

Overlays = Sequence[tuple[int, memoryview]]  # file offset -> bytes that replace the original's there


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A range of bytes that nothing explains; `expected` is empty if only `text` can say what is wrong."""

    offset: int
    where: str
    expected: bytes
    found: bytes
    text: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference of two files. Without a manifest, `layout` is None and nothing is explained."""

    original: Image
    patched: Image
    manifest: Manifest | None
    layout: Layout | None
    program: Program | None  # the original with the user's patches
    unexplained: tuple[Unexplained, ...]
    unexplained_count: int

    @property
    def is_explained(self) -> bool:
        """Whether every changed byte is explained."""
        return self.unexplained_count == 0


def compare(original: Image, patched: Image, *, progress: Progress = silent) -> Diff:
    """Explain how `original` became `patched`.

    Raises:
        ImageError: the patched image was made from another original, or is the original.
    """
    try:
        manifest = find_manifest(patched)
    except ManifestError as error:
        return _damaged(original, patched, str(error), progress)
    if manifest is None:
        if original.section(SECTION) is not None:
            raise ImageError(f"{patched.path}: is not patched, and {original.path} is: the original comes first")
        found, count = _mismatches(original, patched, (), Places(original, patched, None, None), progress)
        return Diff(original, patched, None, None, None, tuple(found), count)
    digest = _check_pair(original, patched, manifest)
    program = open_program(original, given=manifest.given, patches=manifest.patches)
    instructions = site_instructions(program.image, program.dissector, manifest)
    # The manifest is not trusted: first what it says of each site is compared with the original, then the file is made
    # again from what it says, so that only bytes are left to compare.
    wrong = [*_wrong_sites(program, patched, manifest, instructions), *_wrong_claims(program, patched, manifest)]
    if manifest.standalone is None:
        plan = _plan(program, patched, manifest, instructions, progress)
    else:
        plan, made = plan_again(program, manifest, _placement(original, patched, manifest), progress)
        wrong += _wrong_jumps(program, patched, manifest, made)
    wrong += [Unexplained(*one) for one in wrong_files(original, patched, manifest)]
    said = _manifest_section(patched)
    # As the file has it compressed: another version of zstd would make other bytes of the same manifest.
    packed = patched.data[said.offset : said.offset + said.size].data
    layout = lay_out(plan, digest, trampoline_symbols=_has_symbols(patched, manifest), like=packed)
    places = Places(original, patched, manifest, layout)
    # In the order in which `write_image` writes: what comes later lies over what came before.
    overlays = [(offset, memoryview(patch.code)) for offset, patch in placed(original, manifest.patches)]
    overlays += [(offset, code.data) for offset, code in patched_code(plan)]
    overlays += [(offset, code.data) for offset, code in overwritten(plan.image, manifest.jumps, manifest.jump_code)]
    for piece in (*layout.changes, *layout.appended):
        overlays += _parts(piece)
    found, count = _mismatches(original, patched, overlays, places, progress)
    return Diff(original, patched, manifest, layout, program, (*wrong, *found), len(wrong) + count)


def _damaged(original: Image, patched: Image, why: str, progress: Progress) -> Diff:
    """The difference if the manifest cannot be read: nothing is explained, but what differs is counted."""
    places = Places(original, patched, None, None)
    found, count = _mismatches(original, patched, (), places, progress)
    section = patched.section(SECTION)
    first = Unexplained(0 if section is None else section.offset, "manifest", b"", b"", why)
    return Diff(original, patched, None, None, None, (first, *found), count + 1)


def _check_pair(original: Image, patched: Image, manifest: Manifest) -> str:
    digest = hashlib.sha256(original.data.data).hexdigest()
    if digest != manifest.original_sha256 or manifest.arch != original.facts.name:
        raise ImageError(
            f"{patched.path}: was not made from {original.path}, whose SHA-256 is {digest[:16]}..., but from "
            f"{manifest.original_sha256[:16]}..."
        )
    return digest


def _plan(program: Program, patched: Image, manifest: Manifest, instructions: Instructions, progress: Progress) -> Plan:
    """The plan that a rewriting with the manifest's choices would have made."""
    if not manifest.trampolines[1]:
        return Plan(program.image, program.original, manifest, NOWHERE, np.zeros(0, np.uint8), no_refusals())
    placement = _placement(program.original, patched, manifest)
    trampolines, _ = make_trampolines(program.dissector, manifest, instructions, placement, progress)
    return Plan(program.image, program.original, manifest, placement, trampolines, no_refusals())


def _placement(original: Image, patched: Image, manifest: Manifest) -> Placement:
    """The segment of the trampolines, and of a standalone image's data if they are right after them."""
    if manifest.standalone is not None and _is_inside(original, manifest):
        return NOWHERE
    (address, size), inside = manifest.trampolines, 0
    if manifest.standalone is not None and manifest.standalone.address == address + size:
        inside = manifest.standalone.size + -manifest.standalone.size % CHUNK
    parts = [(address, size), (address + size, inside)] if inside else [(address, size)]
    held = [any(start == at and in_file >= part for start, _, in_file in patched.in_file) for at, part in parts]
    if size % CHUNK or not all(held):
        raise ManifestError(f"{patched.path}: its manifest describes trampolines that no segment holds")
    return Placement(address, _load_address(original, patched, address), size + inside)


def _load_address(original: Image, patched: Image, address: int) -> int:
    """The load address of the trampolines: as patched, if some segment of the original has the same distance between
    VMA and LMA."""
    distances = {(one.address - one.load_address) % 2**64 for one in original.segments if one.kind == PT_LOAD}
    for segment in patched.segments:
        if segment.address == address and (address - segment.load_address) % 2**64 in distances:
            # The patched file could name any load address: one that no other segment's distance supports is not
            # trusted.
            return segment.load_address
    return (address - min(distances, default=0)) % 2**64


def _has_symbols(patched: Image, manifest: Manifest) -> bool:
    return any(one.kind == SHT_SYMTAB and one.offset >= manifest.original_size for one in patched.sections)


def _wrong_sites(
    program: Program, patched: Image, manifest: Manifest, instructions: Instructions
) -> Iterator[Unexplained]:
    """Sites for which the manifest contradicts the bytes of the original with its patches."""
    sites = manifest.sites
    wrong = np.zeros(len(sites), np.bool_)
    for name in ("size", "kind", "flow", "verdict"):
        wrong |= sites[name] != getattr(instructions, name)
    # 32 bytes of temporaries a site: blocks bound them.
    for start in range(0, len(sites), _BLOCK >> 5):
        rows = slice(start, start + (_BLOCK >> 5))
        code = instruction_bytes(program.image, sites["address"][rows], sites["size"][rows])
        said = np.ascontiguousarray(sites["original"][rows]).view(np.uint8).reshape(-1, 16)
        wrong[rows] |= (code != said).any(axis=1)
    places = Places(program.original, patched, manifest, None)
    for row in np.flatnonzero(wrong)[:_LIMIT].tolist():
        address = int(sites["address"][row])
        text = "the manifest describes another instruction than the original has here"
        yield Unexplained(program.image.offset_of(address) or 0, places.site(row), b"", b"", text)


def _wrong_jumps(program: Program, patched: Image, manifest: Manifest, made: Generated) -> Iterator[Unexplained]:
    """Jumps and places of trampolines that differ from what the original gives."""
    places = Places(program.original, patched, manifest, None)
    for row in sorted(made.refused)[:_LIMIT]:
        yield Unexplained(0, places.site(row), b"", b"", f"there cannot be a jump: {made.refused[row]}")
    if made.refused:
        return
    given = written(program, made, is_inside=_is_inside(program.original, manifest))
    if any(bytes(memoryview(value)) != bytes(memoryview(getattr(manifest, name))) for name, value in given.items()):
        text = "the manifest has other jumps than the original gives"
        yield Unexplained(0, "manifest", b"", b"", text)
    if not np.array_equal(made.trampolines, manifest.sites["trampoline"]):
        yield Unexplained(0, "manifest", b"", b"", "trampolines at other places than the original gives")


def _is_inside(original: Image, manifest: Manifest) -> bool:
    """Whether a standalone image's trampolines are in gaps of the original."""
    address = manifest.trampolines[0]
    return any(one.kind == PT_LOAD and 0 <= address - one.address < one.size for one in original.segments)


def _wrong_claims(program: Program, patched: Image, manifest: Manifest) -> Iterator[Unexplained]:
    section = _manifest_section(patched)
    for claim in islice(wrong_claims(program, manifest), _LIMIT):
        yield Unexplained(section.offset, "manifest", b"", b"", f"the original has {claim}")


def _manifest_section(patched: Image) -> Section:
    section = patched.section(SECTION)
    assert section is not None, "the manifest was in it"
    return section


def _parts(piece: Piece) -> Iterator[tuple[int, memoryview]]:
    offset = piece.offset
    for part in piece.parts:
        yield offset, part
        offset += len(part)


def _mismatches(
    original: Image, patched: Image, overlays: Overlays, places: Places, progress: Progress
) -> tuple[list[Unexplained], int]:
    """The ranges in which the patched file equals neither the original nor its replacement, and how many there are."""
    found: list[Unexplained] = []
    count = 0
    end = max([len(original.data), *(offset + len(part) for offset, part in overlays)])
    with progress("comparing", end) as done:
        for start in range(0, end, _BLOCK):
            block = slice(start, min(start + _BLOCK, end))
            expected = _expected(original.data, overlays, block)
            actual = patched.data[block]
            first, last = _ranges(np.flatnonzero(expected[: len(actual)] != actual))
            count += len(first)
            for low, high in zip(first[: _LIMIT - len(found)].tolist(), last.tolist(), strict=False):
                at = places.of(start + low)
                found.append(Unexplained(start + low, at, expected[low:high].tobytes(), actual[low:high].tobytes()))
            done(block.stop - block.start)
    found += _wrong_size(patched, end)
    return found, count + (len(patched.data) != end)


def _expected(data: NDArray[np.uint8], overlays: Overlays, block: slice) -> NDArray[np.uint8]:
    expected = np.zeros(block.stop - block.start, np.uint8)
    base = data[block]
    expected[: len(base)] = base
    for offset, part in overlays:
        first, last = max(offset, block.start), min(offset + len(part), block.stop)
        if first < last:
            expected[first - block.start : last - block.start] = np.frombuffer(
                part[first - offset : last - offset], np.uint8
            )
    return expected


def _ranges(positions: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and last + 1 of every run of positions, small gaps included."""
    if not len(positions):
        return positions, positions
    cuts = np.flatnonzero(np.diff(positions) > _GAP)
    return positions[np.append(0, cuts + 1)], positions[np.append(cuts, len(positions) - 1)] + 1


def _wrong_size(patched: Image, end: int) -> list[Unexplained]:
    if len(patched.data) == end:
        return []
    text = f"the file has {len(patched.data):,} bytes, it should have {end:,}"
    return [Unexplained(len(patched.data), "end of the file", b"", b"", text)]
