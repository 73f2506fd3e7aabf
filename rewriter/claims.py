"""An original image and the manifest of a patched one -> what the manifest claims and the original contradicts.

A digest in the manifest proves nothing, since anyone who changes a name can make a new one. Names, identifiers, static
probes and the places of probes are derived again from the original. What came from elsewhere cannot be derived, and is
reported (`unproved`): what was asked for, and names from `--symbols`, `--debug-file` and `--name`.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.numbering import numbered
from kinst.rewriter.naming.resolve import numbering_of, unnamed_size, with_functions_at, with_static
from kinst.rewriter.naming.sites import stepped_over
from kinst.rewriter.patching.placing import wrong_patches
from kinst.rewriter.program import Program, instructions_of, open_program
from kinst.rewriter.shell.wording import counted
from kinst.targets.functions.found import Functions, invented_name
from kinst.targets.instruction import Flow
from kinst.targets.manifest.inlined_names import inlined_values
from kinst.targets.manifest.packed import Manifest, ProbeKind
from kinst.targets.static_probes import StaticProbe

_LEAVING: Final = (Flow.RETURN, Flow.JUMP, Flow.BRANCH, Flow.INDIRECT_JUMP)
_FARTHEST: Final = 64  # bytes by which the entry of a function may be after its first instruction
_PAD: Final = 16  # bytes of a landing pad before the place of a static probe
_SHOWN: Final = 16  # digits of a digest


def wrong_claims(program: Program, manifest: Manifest) -> Iterator[str]:
    """A sentence for each claim that the original contradicts, found as they are asked for: there may be millions.

    Args:
        program: the original's, with the names and the patches that the manifest has.
        manifest: what claims them.
    """
    program, static = with_static(program)
    is_right = True
    for claim in _wrong(program, static, manifest):
        is_right = False
        yield claim
    if is_right and not _has_own_identifiers(program, manifest):
        yield "other identifiers of probes"


def _wrong(program: Program, static: tuple[StaticProbe, ...], manifest: Manifest) -> Iterator[str]:
    yield from wrong_patches(program)
    yield from _wrong_functions(program, manifest)
    yield from _wrong_inlined(program, manifest)
    known = set(static)
    for one in manifest.static:
        if one not in known:
            yield f"no static probe {':'.join(one.key)} as the manifest has it"
    yield from _wrong_places(program, manifest)
    if manifest.original_size != len(program.original.data):
        yield f"{len(program.original.data):,} bytes, not {manifest.original_size:,}"


def unproved(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What the manifest says and the original can neither prove nor contradict: what it is about, and the claim."""
    yield "asked for", ", ".join((*(f"--patch '{one.text}'" for one in manifest.patches), *manifest.options))
    yield "says by itself", f"module {manifest.module}, method {manifest.method}, kinst-rewrite {manifest.tool_version}"
    if len(manifest.given):
        given = manifest.symbols.tobytes() + manifest.strings
        yield "names given", f"{counted(len(manifest.given), 'name')} from elsewhere, SHA-256 {_digest(given)}"
    if manifest.inlined:
        copies = sum(one.copies for one in manifest.inlined)
        packed = json.dumps(inlined_values(manifest.inlined)).encode()
        names = counted(len(manifest.inlined), "name")
        yield "inlined", f"{names} of {copies:,} copies, by debug information, SHA-256 {_digest(packed)}"


def _digest(data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()[:_SHOWN]}..."


def _wrong_functions(program: Program, manifest: Manifest) -> Iterator[str]:
    """Functions with wrong bounds. Those from before names were given are right: an image may be patched in steps."""
    wrong = _unlike(program, manifest, range(len(manifest.functions)))
    if wrong and len(manifest.given):
        # Given names move bounds. What is wrong with them may be right without them: the image was patched before they
        # were given.
        wrong = _unlike(with_static(open_program(program.original))[0], manifest, wrong)
    for row in wrong:
        address, size, _ = manifest.functions[row].tolist()
        yield f"no function {manifest.function_name(row)} of {size} bytes at {address:#x}"


def _unlike(program: Program, manifest: Manifest, rows: Sequence[int]) -> list[int]:
    """Rows of the manifest's functions that the program does not have."""
    addresses, sizes = manifest.functions["address"].tolist(), manifest.functions["size"].tolist()
    unnamed = [addresses[row] for row in rows if manifest.function_name(row) == invented_name(addresses[row])]
    every = with_functions_at(program, unnamed).functions
    at = {address: row for row, address in enumerate(every.address.tolist())}

    def is_known(row: int) -> bool:
        address, name = addresses[row], manifest.function_name(row)
        found = at.get(address)
        if found is None or name not in _names(every, found):
            return False
        if sizes[row] == every.size[found]:
            return True
        # known by its address, and others were not yet
        return name == invented_name(address) and sizes[row] == unnamed_size(program, address)

    return [row for row in rows if not is_known(row)]


def _names(functions: Functions, row: int) -> tuple[str, ...]:
    return functions.names[row], *functions.aliases.get(row, ()), invented_name(int(functions.address[row]))


def _wrong_inlined(program: Program, manifest: Manifest) -> Iterator[str]:
    """Wrong places in inlined copies. Which function was inlined there, only debug information knows."""
    functions = program.functions
    for one in manifest.inlined:
        for address, name in one.own:
            row = functions.row_at(address)
            if row is None or name not in _names(functions, row):
                yield f"no function {name} at {address:#x}"
        for place in one.places:
            if functions.row_at(place.address) is None:
                yield f"no code at {place.address:#x}, of {one.function}'s copies"


def _wrong_places(program: Program, manifest: Manifest) -> Iterator[str]:
    """Probes at other places than their names say; those of kinst were checked when the manifest was read."""
    enablings, probes = manifest.enablings, manifest.probes
    probe, site = enablings["probe"], enablings["site"]
    kind = probes["kind"][probe]
    checks: dict[ProbeKind, Callable[[NDArray[np.uint32], NDArray[np.uint32]], NDArray[np.bool_]]] = {
        ProbeKind.FBT_ENTRY: lambda probe, site: _are_entries(program, manifest, probe, site),
        ProbeKind.FBT_RETURN: lambda _, site: np.isin(manifest.sites["flow"][site], _LEAVING),
        ProbeKind.SDT: lambda probe, site: _are_static(manifest, probe, site),
    }
    for one, check in checks.items():
        rows = np.flatnonzero(kind == one)
        if len(rows):
            for row in rows[~check(probe[rows], site[rows])].tolist():
                address = int(manifest.sites["address"][site[row]])
                yield f"no probe {manifest.probe_name(int(probe[row]))} at {address:#x}"


def _are_entries(
    program: Program, manifest: Manifest, probe: NDArray[np.uint32], site: NDArray[np.uint32]
) -> NDArray[np.bool_]:
    """One place each, with nothing before it but what an entry's place may be after (see `sites.entry_sites`)."""
    function = manifest.probes["function"][probe]
    starts = manifest.functions["address"][function]
    distance = manifest.sites["address"][site] - starts
    ends = distance + manifest.sites["size"][site]
    first, row = np.unique(starts, return_inverse=True)
    size = np.zeros(len(first), np.uint64)
    np.maximum.at(size, row, np.minimum(ends, np.uint64(_FARTHEST)))  # no instruction is cut to size: that costs time
    # Only as much of each function as its entries need: there may be a million.
    trimmed = Functions(first, size, np.zeros(len(first), np.uint8), tuple(map(invented_name, first.tolist())), {})
    found = instructions_of(replace(program, functions=trimmed), np.arange(len(first)))
    stops = ~stepped_over(found, np.arange(len(found)))
    # Of each function the first instruction that is not stepped over: no place after it is an entry.
    last = np.full(len(first), _FARTHEST, np.uint64)
    np.minimum.at(last, found.function[stops], found.address[stops] - first[found.function[stops]])
    _, number, count = np.unique(probe, return_inverse=True, return_counts=True)
    result: NDArray[np.bool_] = (count[number] == 1) & (distance <= last[row])
    return result


def _are_static(manifest: Manifest, probe: NDArray[np.uint32], site: NDArray[np.uint32]) -> NDArray[np.bool_]:
    addresses = manifest.sites["address"][site].tolist()
    rows = manifest.probes["offset"][probe].tolist()
    pairs = zip(rows, addresses, strict=True)
    return np.array([_is_place(manifest.static[row], address) for row, address in pairs], np.bool_)


def _is_place(probe: StaticProbe, address: int) -> bool:
    return any(0 <= address - place.address < _PAD for place in probe.places)


def _has_own_identifiers(program: Program, manifest: Manifest) -> bool:
    known = numbered(manifest, numbering_of(program))
    return (
        np.array_equal(known.numbers, manifest.numbers)
        and known.static_numbers == manifest.static_numbers
        and known.next_identifier == manifest.next_identifier
    )
