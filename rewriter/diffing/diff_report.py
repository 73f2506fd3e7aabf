"""A difference of two images -> lines of text, or a JSON value."""

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.claims import unproved
from kinst.rewriter.diffing.diff import Diff, Unexplained
from kinst.rewriter.diffing.places import Places
from kinst.rewriter.disassemble import differing, disassemble
from kinst.rewriter.patching.report import patch_line, patch_values, patches_text
from kinst.rewriter.planning.layout import Piece
from kinst.rewriter.planning.program_headers import PT_GNU_STACK, PT_NULL, PT_PHDR
from kinst.rewriter.shell.wording import counted
from kinst.rewriter.writing.write import patched_sizes
from kinst.targets.columns import unique
from kinst.targets.elf.header import ELF_HEADER, PROGRAM_HEADER, PT_DYNAMIC, PT_LOAD
from kinst.targets.instruction import Verdict
from kinst.targets.kernels.leading_records import FIELD, led_elsewhere
from kinst.targets.manifest.packed import Manifest

_LONGEST: Final = 4096  # bytes of a trampoline that are shown
FEW: Final = 12  # sites that are listed without --verbose
_SHOWN: Final = 20  # unexplained ranges that are printed
_FIELDS: Final = {
    4: "e_entry",
    5: "e_phoff",
    6: "e_shoff",
    10: "e_phnum",
    11: "e_shentsize",
    12: "e_shnum",
    13: "e_shstrndx",
}
IDENTICAL: Final = "the files are identical, and not patched"
_KINDS: Final = {
    PT_NULL: "NULL",
    PT_LOAD: "LOAD",
    PT_DYNAMIC: "DYNAMIC",
    4: "NOTE",
    PT_PHDR: "PHDR",
    PT_GNU_STACK: "GNU_STACK",
}


def text_lines(diff: Diff, *, verbose: bool = False) -> Iterator[str]:
    """The lines that `kinst-diff` prints: what explains the differences, what nothing explains, and the verdict."""
    if diff.manifest is not None and diff.layout is not None:
        yield from (f"{what:16} {text}" for what, text in _explained(diff))
        if verbose or len(diff.manifest.patches) <= FEW:
            yield from (f"  {patch_line(value)}" for value in patches(diff))
        if verbose or len(diff.manifest.sites) <= FEW:
            yield from (f"  {_site_text(site)}" for site in sites(diff))
    for one in diff.unexplained[:_SHOWN]:
        yield f"UNEXPLAINED      {_unexplained_text(one)}"
    if diff.unexplained_count > _SHOWN:
        yield f"UNEXPLAINED      and {diff.unexplained_count - min(_SHOWN, len(diff.unexplained)):,} more"
    yield verdict(diff)


def verdict(diff: Diff) -> str:
    """The last line: whether every difference is explained."""
    if not diff.is_explained:
        text = f"not explained: {counted(diff.unexplained_count, 'difference')}"
        return text if diff.manifest is not None else f"{text}: the second file is not patched, it has no manifest"
    return "every difference is explained" if diff.manifest is not None else IDENTICAL


def json_lines(diff: Diff, *, verbose: bool = False) -> Iterator[str]:
    """The same as one JSON value. `verbose` adds each site, a line each: there may be millions."""
    text = json.dumps(json_value(diff), indent=2)
    if not verbose or diff.manifest is None:
        yield text
        return
    yield text.removesuffix("\n}") + ',\n  "sites": ['
    last = len(diff.manifest.sites) - 1
    for row, site in enumerate(sites(diff)):
        yield f"    {json.dumps(site)}{',' if row < last else ''}"
    yield "  ]\n}"


def json_value(diff: Diff) -> dict[str, Any]:
    """The difference without its sites, for `json.dumps`."""
    return {
        "original": str(diff.original.path),
        "patched": str(diff.patched.path),
        "explained": diff.is_explained,
        "changes": [{"what": what, "text": text} for what, text in _explained(diff)] if diff.manifest else [],
        "patches": list(patches(diff)),
        "unexplained_count": diff.unexplained_count,
        "unexplained": [
            {
                "offset": one.offset,
                "where": one.where,
                "expected": one.expected.hex(),
                "found": one.found.hex(),
                "text": one.text,
            }
            for one in diff.unexplained
        ],
    }


def _unexplained_text(one: Unexplained) -> str:
    if one.text:
        return f"{one.offset:#x} {one.where}: {one.text}"
    expected, found = one.expected[:16].hex(" "), one.found[:16].hex(" ")
    more = "" if len(one.found) <= 16 else f" ... ({len(one.found):,} bytes)"
    return f"{one.offset:#x} {one.where}: {found}, expected {expected}{more}"


def _explained(diff: Diff) -> Iterator[tuple[str, str]]:
    assert diff.manifest is not None and diff.layout is not None
    for piece in diff.layout.changes:
        old = diff.original.data[piece.offset : piece.offset + piece.size].tobytes()
        new = b"".join(piece.parts)
        yield piece.what, _header_text(old, new) if piece.offset == 0 else f"{_segment(old)} -> {_segment(new)}"
    if diff.manifest.patches:
        yield "patches", f"{patches_text(diff.manifest)}, whole instructions of the original"
    if len(diff.manifest.sites):
        yield "sites", (_sites_text if diff.manifest.standalone is None else _jumps_text)(diff, diff.manifest)
    for piece in diff.layout.appended:
        yield piece.what, f"{piece.size:,} bytes at file offset {piece.offset:#x}{_piece_text(piece, diff.manifest)}"
    yield from unproved(diff.manifest)


def _header_text(old: bytes, new: bytes) -> str:
    before, after = ELF_HEADER.unpack(old), ELF_HEADER.unpack(new)
    return ", ".join(
        f"{name} {before[index]:#x} -> {after[index]:#x}"
        for index, name in _FIELDS.items()
        if before[index] != after[index]
    )


def _segment(row: bytes) -> str:
    values = np.frombuffer(row, PROGRAM_HEADER)[0]
    kind = _KINDS.get(int(values["kind"]), hex(int(values["kind"])))
    if not values["size"]:
        return kind
    return (
        f"{kind} {int(values['address']):#x} (loaded at {int(values['load_address']):#x}), "
        f"{int(values['size']):,} bytes at file offset {int(values['offset']):#x}"
    )


def _sites_text(diff: Diff, manifest: Manifest) -> str:
    patched = manifest.patched
    changed = int(patched_sizes(patched["size"], diff.original.facts).sum())
    functions = len(unique(patched["function"]))
    return (
        f"{counted(len(patched), 'instruction')} of {counted(functions, 'function')}, "
        f"{counted(changed, 'byte')}, each a breakpoint now{_deferred_text(len(manifest.sites) - len(patched))}"
    )


def _jumps_text(diff: Diff, manifest: Manifest) -> str:
    functions, (start, size) = len(unique(manifest.sites["function"])), manifest.trampolines
    address, sizes = manifest.jumps["address"], manifest.jumps["size"]
    inside = int(sizes[address - np.uint64(start) < np.uint64(size)].sum())  # below the start it wraps round
    led = len(led_elsewhere(diff.original, manifest))
    count, changed = len(unique(manifest.sites["trampoline"])), int(sizes.sum()) - inside - FIELD * led
    records = f"; {counted(led, 'record')} of the kernel's now lead to displaced instructions" if led else ""
    where = (
        f"; trampolines in unused space of the image from {start:#x} on, {counted(inside, 'byte')}" if inside else ""
    )
    return (
        f"{counted(len(manifest.sites), 'instruction')} of {counted(functions, 'function')}, to which "
        f"{counted(count, 'jump')} of {counted(changed, 'byte')} lead{where}{records}"
    )


def _deferred_text(count: int) -> str:
    if not count:
        return ""
    return f"; {counted(count, 'deferred site')}, where the guest writes: the file has the original's bytes"


def _piece_text(piece: Piece, manifest: Manifest) -> str:
    if piece.what == "trampolines" and manifest.standalone is not None:
        return f": code for {counted(len(manifest.sites), 'site')}, made again from the original and compared"
    if piece.what == "trampolines":
        copied = int((manifest.sites["verdict"] == Verdict.COPY).sum())
        deferred = int(manifest.is_deferred.sum())
        empty = f", {deferred:,} left empty for what the guest writes" if deferred else ""
        return (
            f": {counted(copied, 'displaced instruction')}, derived again from the original and compared; "
            f"{len(manifest.sites) - copied - deferred:,} emulated{empty}"
        )
    if piece.what == "manifest":
        return f": {counted(len(manifest.sites), 'site')}, {counted(len(manifest.probes), 'probe')}"
    return ""


def patches(diff: Diff) -> Iterator[dict[str, Any]]:
    """Each patch: where it is, and its instructions before and after."""
    return iter(()) if diff.program is None else patch_values(diff.program, diff.program.patches)


def sites(diff: Diff) -> Iterator[dict[str, Any]]:
    """Each site: where it is, its instruction before and after, and its trampoline."""
    assert diff.manifest is not None
    manifest, facts = diff.manifest, diff.original.facts
    places = Places(diff.original, diff.patched, manifest, diff.layout)
    for row in range(len(manifest.sites)):
        site = manifest.sites[row]
        address, slot = int(site["address"]), int(site["trampoline"])
        before = bytes(site["original"])[: int(site["size"])]
        after = before if site["verdict"] == Verdict.DEFER else facts.breakpoints[len(before)]
        if manifest.standalone is not None:
            after = diff.patched.read(address, len(before))
        text, text_after = differing(_text(diff, before, address), before, _text(diff, after, address), after)
        yield {
            "address": address,
            "site": places.site(row),
            "before": before.hex(" "),
            "instruction": text,
            "after": after.hex(" "),
            "breakpoint": text_after,
            "kind": facts.kinds(int(site["kind"])).name,
            "verdict": Verdict(int(site["verdict"])).name,
            "trampoline": slot,
            "trampoline_code": _trampoline_text(diff, site),
        }


def _text(diff: Diff, code: bytes, address: int) -> str:
    return "; ".join(line.text.replace("\t", " ") for line in disassemble(diff.original.facts, code, address))


def _trampoline_text(diff: Diff, site: NDArray[np.void]) -> str:
    """The displaced instruction as it stands in its slot; of an emulated one nothing runs."""
    if diff.manifest is not None and diff.manifest.standalone is not None:
        return _text(diff, standalone_code(diff, diff.manifest, int(site["trampoline"])), int(site["trampoline"]))
    if site["verdict"] != Verdict.COPY:
        return ""
    slot = int(site["trampoline"])
    return _text(diff, diff.patched.read(slot, diff.original.facts.slot_size), slot).split("; ")[0]


def standalone_code(diff: Diff, manifest: Manifest, start: int) -> bytes:
    """The bytes of a standalone image's trampoline: up to the next one."""
    starts = manifest.sites["trampoline"]
    row = int(np.searchsorted(starts, np.uint64(start), "right"))
    end = int(starts[row]) if row < len(starts) else sum(manifest.trampolines)
    code = diff.patched.read(start, min(end - start, _LONGEST))
    filler = diff.original.facts.breakpoints[max(diff.original.facts.breakpoints)]
    while code.endswith(filler):
        code = code.removesuffix(filler)
    return code


def _site_text(site: dict[str, Any]) -> str:
    if site["verdict"] == Verdict.DEFER.name:
        return f"{site['address']:#x} {site['site']}: {site['before']} {site['instruction']}; deferred, untouched"
    how = f"trampoline {site['trampoline']:#x}: {site['trampoline_code']}" if site["trampoline_code"] else "emulated"
    return (
        f"{site['address']:#x} {site['site']}: {site['before']} {site['instruction']} -> {site['after']} "
        f"{site['breakpoint']}; {how}"
    )
