"""A function and inputs -> the outcome of each call, and the instructions that all of them reached."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from kinst.rewriter.listing import instruction_rows
from kinst.runtime.api import ImageFile, open_image
from kinst.runtime.batch.rows import Answer, Outcome, Row
from kinst.runtime.batch.tasks import Call, InputFile, Places
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.template import parse_call
from kinst.runtime.tracing.calls.sweep import Sweep
from kinst.runtime.tracing.given import Machine
from kinst.targets.errors import KinstError
from kinst.targets.image import module_name


class _Reached:
    """The instructions that calls have reached, by the identifiers of their probes."""

    def __init__(self) -> None:
        self.hits = Counter[int]()
        self.inputs = Counter[int]()
        self.first: dict[int, int] = {}  # the number of the first input

    def facts(self, identifier: int | None, why: str) -> Row:
        """The columns of an instruction; without a probe, `why` says why there is none."""
        if identifier is None:
            return {"hits": None, "inputs": None, "first": None, "refused": why}
        hits, inputs = self.hits[identifier], self.inputs[identifier]
        return {"hits": hits, "inputs": inputs, "first": self.first.get(identifier), "refused": None}

    def add(self, number: int, hits: Mapping[int, int]) -> int:
        """Add what an input reached. Returns how many instructions are new."""
        known = len(self.first)
        self.hits.update(hits)
        self.inputs.update(hits.keys())
        for identifier in hits:
            self.first.setdefault(identifier, number)
        return len(self.first) - known


def call_all(image: InputFile, work: Call, places: Places) -> Answer:
    """Call the function with each input; each call starts from the image as it was loaded.

    Raises:
        KinstError: there is no such function, or it cannot be called.
    """
    with open_image(places[image.sha256], name=module_name(Path(image.name))) as opened:
        machine = Machine(board=work.machine, clock="icount")
        sweep, reached = opened.sweep(work.function, coverage=work.coverage, machine=machine), _Reached()
        rows = [_row(sweep, number, text, work, reached) for number, text in enumerate(work.inputs, work.first)]
        coverage = tuple(_coverage(opened, image, work, reached)) if work.coverage else ()
    return Answer(tuple(rows), coverage)


def _row(sweep: Sweep, number: int, text: str, work: Call, reached: _Reached) -> Row:
    try:
        called = sweep.call(*parse_call(f"{work.function}({text})").arguments, seconds=work.seconds)
    except KinstError as error:
        return {"input": text, "outcome": Outcome.REFUSED.value, "reason": str(error)}
    row: Row = {
        "input": text,
        "outcome": Outcome.DONE.value,
        "machine": sweep.machine,
        "end": _end(called),
        "remarks": called.error or None,
        "result": None if called.result is None else f"{called.result:#x}",
    }
    if work.coverage:
        new = reached.add(number, called.hits)
        row |= {"covered": len(called.hits), "path": _path(called.hits), "new": new}
    return row


def _end(called: Called) -> str:
    return "fault" if called.end is None else called.end.value


def _path(hits: Mapping[int, int]) -> str:
    """A digest of the instructions that were reached, which is equal in every process."""
    found = sorted(hits)
    return f"{zlib.crc32(struct.pack(f'<{len(found)}Q', *found)):08x}"


def _coverage(opened: ImageFile, image: InputFile, work: Call, reached: _Reached) -> Iterator[Row]:
    """A row for each instruction, reached or not."""
    resolution = opened.resolve(f"kinst::{work.coverage}:")
    probes = {(probe.function, probe.name): probe.identifier for probe in opened.probes(f"kinst::{work.coverage}:")}
    for function in resolution.outcomes[0].functions.tolist():
        name = resolution.code.functions.names[function]
        for row in instruction_rows(resolution.program.image, resolution.code, function):
            text = row["text"].replace("\t", " ")
            place = {"image": image.name, "function": name, "offset": row["offset"], "instruction": text}
            yield place | reached.facts(probes.get((name, str(row["offset"]))), row["why"])
