"""Probes and instructions of an image -> the lines of `kinst-list`, in the columns of ``dtrace -l``, or JSON values."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.jumps.report import JumpReport
from kinst.rewriter.naming.inline_probes import InlineSite
from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.naming.sites import Decoded
from kinst.targets.functions.found import Evidence, Functions
from kinst.targets.image import Image
from kinst.targets.instruction import Reason, Verdict
from kinst.targets.manifest.packed import PROBE_FORM, Manifest, ProbeKind
from kinst.targets.values import dataclass

_ROW: Final = "%5s %10s %17s %33s %s"
HEADER: Final = _ROW % ("ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")


@dataclass(frozen=True, slots=True)
class Row:
    """A probe as it is listed; `row` is its row in the manifest."""

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


@dataclass(frozen=True, slots=True)
class Notes:
    """What is listed of probes besides their names: inlined copies by the address of their site (`inlined_copies`), how
    sites could be jumps, and what vouches for the functions, by their addresses (`evidence_texts`)."""

    copies: Mapping[int, InlineSite]
    jumps: JumpReport | None = None
    evidence: Mapping[int, str] = field(default_factory=dict)


_NO_NOTES: Final = Notes({})


def probe_lines(manifest: Manifest, rows: NDArray[np.intp] | None = None, notes: Notes = _NO_NOTES) -> Iterator[str]:
    """The lines of ``dtrace -l``. A probe in an inlined copy is followed by what was inlined and the place of the call;
    a deferred one is marked as such."""
    yield HEADER
    sites, deferred = _site_counts(manifest)
    addresses = _site_addresses(manifest)
    for row, site in _with_copies(manifest, rows, notes.copies):
        remarks = [] if site is None else [_copy_text(site)]
        if deferred[row.row]:
            is_all = deferred[row.row] == sites[row.row]
            remarks.append("deferred" if is_all else f"deferred at {deferred[row.row]} of {sites[row.row]} sites")
        if notes.jumps is not None:
            remarks.append(f"jump {_jump_counts(list(map(notes.jumps.method, addresses(row.row))))}")
        if (vouched := notes.evidence.get(_function_address(manifest, row.row))) is not None:
            remarks.append(f"by {vouched}")
        yield f"{row.text:<80} {', '.join(remarks)}" if remarks else row.text


def probe_values(
    manifest: Manifest, rows: NDArray[np.intp] | None = None, notes: Notes = _NO_NOTES
) -> Iterator[dict[str, Any]]:
    """The same for `json.dumps`."""
    sites, deferred = _site_counts(manifest)
    addresses = _site_addresses(manifest)
    for row, site in _with_copies(manifest, rows, notes.copies):
        value: dict[str, Any] = dict(zip(("id", "provider", "module", "function", "name"), row.fields, strict=True))
        if deferred[row.row]:
            value["deferred"] = {"sites": deferred[row.row], "of": sites[row.row]}
        if site is not None:
            calls = [{"file": copy.call.file, "line": copy.call.line} for copy in site.copies]
            value["inlined"] = {"function": site.function, "calls": calls}
        if (vouched := notes.evidence.get(_function_address(manifest, row.row))) is not None:
            value["evidence"] = vouched
        if notes.jumps is not None:
            value["jumps"] = [{"address": one, **notes.jumps.value(one)} for one in addresses(row.row)]
        yield value


def evidence_texts(functions: Functions) -> dict[int, str]:
    """What vouches for each function, by its address."""
    kinds = [Evidence(kind).text for kind in functions.evidence.tolist()]
    return dict(zip(functions.address.tolist(), kinds, strict=True))


def _function_address(manifest: Manifest, row: int) -> int:
    """Where the function of a probe begins, or that which holds a static probe."""
    return int(manifest.functions["address"][manifest.probes["function"][row]])


def _site_counts(manifest: Manifest) -> tuple[list[int], list[int]]:
    """How many sites each probe has, and how many of them are deferred."""
    probe, site = manifest.enablings["probe"], manifest.enablings["site"]
    count = len(manifest.probes)
    deferred = probe[manifest.is_deferred[site]]
    return np.bincount(probe, minlength=count).tolist(), np.bincount(deferred, minlength=count).tolist()


def _jump_counts(methods: Sequence[str]) -> str:
    """``together``; of several sites ``2 alone, 1 trap``."""
    counts = Counter(methods).most_common()
    return methods[0] if len(methods) == 1 else ", ".join(f"{count} {method}" for method, count in counts)


def _site_addresses(manifest: Manifest) -> Callable[[int], list[int]]:
    """A function from the row of a probe to the addresses of its sites."""
    order = np.argsort(manifest.enablings["probe"], kind="stable")
    ordered = manifest.enablings["probe"][order]
    first = np.searchsorted(ordered, np.arange(len(manifest.probes) + 1))
    address = manifest.sites["address"][manifest.enablings["site"][order]]
    return lambda row: address[first[row] : first[row + 1]].tolist()


def inlined_copies(resolution: Resolution) -> dict[int, InlineSite]:
    """The sites in inlined copies that names stand for, by address."""
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


def instruction_rows(
    image: Image, code: Decoded, function: int, jumps: JumpReport | None = None
) -> Iterator[dict[str, Any]]:
    """Each instruction of a function: where it is, what it is, and how a probe on it would be run."""
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
            **({} if jumps is None else {"jump": jumps.value(address)}),
        }


def _disassembled(image: Image, start: int, size: int) -> dict[tuple[int, int], str]:
    return {(line.address, line.size): line.text for line in disassemble(image.facts, image.read(start, size), start)}


def _absolute(text: str, address: int, target: int) -> str:
    """The text of an instruction with a target address. Capstone 5 prints RISC-V's jump operands as distances."""
    mnemonic, _, last = text.rpartition(" ")
    is_distance = target and last in (f"{target - address:#x}", f"{target - address}")
    return f"{mnemonic} {target:#x}" if is_distance else text


def _single(image: Image, data: bytes, address: int) -> str:
    """A single instruction, for when the disassembler's sweep of the function is out of step."""
    return "; ".join(line.text for line in disassemble(image.facts, data, address))


def disassembly_lines(
    resolution: Resolution, functions: Sequence[int], jumps: JumpReport | None = None
) -> Iterator[str]:
    """The instructions of some functions, each with its offset and verdict."""
    image, code = resolution.program.image, resolution.code
    for function in functions:
        address, size = int(code.functions.address[function]), int(code.functions.size[function])
        yield f"{code.functions.names[function]}: {address:#x}, {size} bytes"
        for row in instruction_rows(image, code, function, jumps):
            how = f"{_HOW[row['verdict']]}: {row['why']}" if row["reason"] else _HOW[row["verdict"]]
            kind = "" if row["kind"] == "OTHER" else f" ({row['kind'].lower().replace('_', ' ')})"
            text = row["text"].replace("\t", " ")
            yield f"{row['offset']:8} {row['address']:#18x}  {row['bytes']:16} {text:40} {how}{kind}{_jump_text(row)}"
        yield ""


def _jump_text(row: Mapping[str, Any]) -> str:
    jump = row.get("jump")
    return "" if jump is None else f"; jump {jump['method']}: {jump['why']}; dead: {' '.join(jump['dead']) or 'none'}"


_HOW: Final = {"copy": "trampoline", "emulate": "emulated", "refuse": "refused", "defer": "deferred"}
