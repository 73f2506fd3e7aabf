"""Probes and instructions of an image -> the lines of `kinst-list`, in the columns of ``dtrace -l``, or JSON values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.inline_probes import InlineSite
from kinst.rewriter.resolve import Resolution
from kinst.rewriter.sites import Decoded
from kinst.targets.image import Image
from kinst.targets.instruction import Reason, Verdict
from kinst.targets.manifest import PROBE_FORM, Manifest, ProbeKind

_ROW: Final = "%5s %10s %17s %33s %s"
HEADER: Final = _ROW % ("ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")


@dataclass(frozen=True, slots=True)
class Row:
    """A probe as it is listed; `row` is that of the manifest."""

    row: int
    fields: tuple[int, str, str, str, str]  # id, provider, module, function, name

    @property
    def text(self) -> str:
        """The line that ``dtrace -l`` prints."""
        return _ROW % self.fields


def probe_rows(manifest: Manifest, rows: NDArray[np.intp] | None = None) -> Iterator[Row]:
    """The probes in some rows, or all, by identifier."""
    names = [manifest.function_name(row) for row in range(len(manifest.functions))]
    numbers = np.arange(len(manifest.probes)) if rows is None else rows
    identifiers = manifest.identifiers[numbers]
    order = np.argsort(identifiers, kind="stable")
    numbers, identifiers = numbers[order], identifiers[order]
    chosen = manifest.probes[numbers]
    columns = (chosen["kind"].tolist(), chosen["function"].tolist(), chosen["offset"].tolist())
    for number, identifier, kind, function, offset in zip(
        numbers.tolist(), identifiers.tolist(), *columns, strict=True
    ):
        if kind == ProbeKind.SDT:
            yield Row(number, (identifier, *manifest.probe_fields(number)))
            continue
        provider, name = PROBE_FORM[kind]
        yield Row(number, (identifier, provider, manifest.module, names[function], name or str(offset)))


def probe_lines(
    manifest: Manifest, rows: NDArray[np.intp] | None = None, copies: Mapping[int, InlineSite] | None = None
) -> Iterator[str]:
    """The lines of ``dtrace -l``. A probe in an inlined copy (`inlined_copies`) is followed by what was inlined and the
    place of the call; a deferred one is marked as such."""
    yield HEADER
    sites, deferred = _site_counts(manifest)
    for row, site in _with_copies(manifest, rows, copies or {}):
        notes = [] if site is None else [_copy_text(site)]
        if deferred[row.row]:
            is_all = deferred[row.row] == sites[row.row]
            notes.append("deferred" if is_all else f"deferred at {deferred[row.row]} of {sites[row.row]} sites")
        yield f"{row.text:<80} {', '.join(notes)}" if notes else row.text


def probe_values(
    manifest: Manifest, rows: NDArray[np.intp] | None = None, copies: Mapping[int, InlineSite] | None = None
) -> Iterator[dict[str, Any]]:
    """The same for `json.dumps`."""
    sites, deferred = _site_counts(manifest)
    for row, site in _with_copies(manifest, rows, copies or {}):
        value: dict[str, Any] = dict(zip(("id", "provider", "module", "function", "name"), row.fields, strict=True))
        if deferred[row.row]:
            value["deferred"] = {"sites": deferred[row.row], "of": sites[row.row]}
        if site is not None:
            calls = [{"file": copy.call.file, "line": copy.call.line} for copy in site.copies]
            value["inlined"] = {"function": site.function, "calls": calls}
        yield value


def _site_counts(manifest: Manifest) -> tuple[list[int], list[int]]:
    """How many sites each probe has, and how many of them are deferred."""
    probe, site = manifest.enablings["probe"], manifest.enablings["site"]
    count = len(manifest.probes)
    deferred = probe[manifest.is_deferred[site]]
    return np.bincount(probe, minlength=count).tolist(), np.bincount(deferred, minlength=count).tolist()


def inlined_copies(resolution: Resolution) -> dict[int, InlineSite]:
    """The sites in inlined copies that names came to, by address."""
    expansions = (outcome.expansion for outcome in resolution.outcomes)
    return {site.address: site for one in expansions if one is not None for site in one.sites}


def _with_copies(
    manifest: Manifest, rows: NDArray[np.intp] | None, copies: Mapping[int, InlineSite]
) -> Iterator[tuple[Row, InlineSite | None]]:
    for row in probe_rows(manifest, rows):
        kind, function, offset = manifest.probes[row.row].tolist() if copies else (None, 0, 0)
        is_kinst = kind == ProbeKind.KINST
        yield row, copies.get(int(manifest.functions["address"][function]) + offset) if is_kinst else None


def _copy_text(site: InlineSite) -> str:
    call = site.copies[0].call
    return f"{site.function} at {call.file}:{call.line}" if call.file else site.function


def instruction_rows(image: Image, code: Decoded, function: int) -> Iterator[dict[str, Any]]:
    """Each instruction of a function: where it is, what it is, and how a probe on it would be carried out."""
    start = int(code.functions.address[function])
    first, last = int(code.first[function]), int(code.last[function])
    found = code.instructions
    lines = _disassembled(image, start, int(code.functions.size[function]))
    for row in range(first, last):
        address, size, target = int(found.address[row]), int(found.size[row]), int(found.target[row])
        data = image.read(address, size)
        verdict, reason = Verdict(int(found.verdict[row])), Reason(int(found.reason[row]))
        yield {
            "offset": address - start,
            "address": address,
            "bytes": data.hex(),
            "text": _absolute(lines.get((address, size)) or _single(image, data, address), address, target),
            "target": target,
            "kind": image.facts.kinds(int(found.kind[row])).name,
            "verdict": verdict.name.lower(),
            "reason": reason.name.lower() if reason else "",
            "why": reason.text,
        }


def _disassembled(image: Image, start: int, size: int) -> dict[tuple[int, int], str]:
    return {(line.address, line.size): line.text for line in disassemble(image.facts, image.read(start, size), start)}


def _absolute(text: str, address: int, target: int) -> str:
    """The text of an instruction with a target address. Capstone 5 prints RISC-V's jump operands as distances."""
    mnemonic, _, last = text.rpartition(" ")
    is_distance = target and last in (f"{target - address:#x}", f"{target - address}")
    return f"{mnemonic} {target:#x}" if is_distance else text


def _single(image: Image, data: bytes, address: int) -> str:
    """One instruction by itself, for when the disassembler's sweep of the function is out of step."""
    return "; ".join(line.text for line in disassemble(image.facts, data, address))


def disassembly_lines(resolution: Resolution, functions: Sequence[int]) -> Iterator[str]:
    """The instructions of some functions, each with its offset and verdict."""
    image, code = resolution.program.image, resolution.code
    for function in functions:
        address, size = int(code.functions.address[function]), int(code.functions.size[function])
        yield f"{code.functions.names[function]}: {address:#x}, {size} bytes"
        for row in instruction_rows(image, code, function):
            how = f"{_HOW[row['verdict']]}: {row['why']}" if row["reason"] else _HOW[row["verdict"]]
            kind = "" if row["kind"] == "OTHER" else f" ({row['kind'].lower().replace('_', ' ')})"
            text = row["text"].replace("\t", " ")
            yield f"{row['offset']:8} {row['address']:#18x}  {row['bytes']:16} {text:40} {how}{kind}"
        yield ""


_HOW: Final = {"copy": "trampoline", "emulate": "emulated", "refuse": "refused", "defer": "deferred"}
