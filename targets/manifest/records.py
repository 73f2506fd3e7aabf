"""The treaty between rewriter and runtime: what was patched, as a value.

The runtime needs nothing else to run a patched image, and never asks how a patch was decided.
`kinst.targets.manifest.packed` packs it.
"""

from dataclasses import field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.symbols import SYMBOL, Symbols, symbols_of
from kinst.targets.instruction import Verdict
from kinst.targets.manifest.inlined_names import InlinedName
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.patch import Patch
from kinst.targets.standalone import Standalone
from kinst.targets.static_probes import StaticProbe
from kinst.targets.values import dataclass


class ProbeKind(IntEnum):
    """What a probe stands for; also gives its provider and the form of its name."""

    KINST = 0  # kinst:module:function:<offset>
    FBT_ENTRY = 1  # fbt:module:function:entry
    FBT_RETURN = 2  # fbt:module:function:return, one probe for all sites of a function
    SDT = 3  # a static probe of the image; its `offset` is a row of `Manifest.static`


# One patched instruction, in address order: 40 bytes.
SITE = np.dtype(
    [
        ("address", "<u8"),  # link address
        ("trampoline", "<u8"),  # link address of its slot; of a standalone image's, which several sites may share
        ("original", "V16"),  # pristine bytes of the instruction, zero-padded
        ("size", "u1"),  # of the instruction; amd64 patches only its first byte
        ("kind", "u1"),  # the machine's own Kind
        ("verdict", "u1"),  # Verdict.COPY, EMULATE or DEFER
        ("flow", "u1"),  # Flow
        ("function", "<u4"),  # row of `functions`
    ]
)
# One probe: 12 bytes.
PROBE = np.dtype([("kind", "<u4"), ("function", "<u4"), ("offset", "<u4")])
# One (site, probe) pair, ordered by site; a site may serve several probes and a probe several sites: 8 bytes.
ENABLING = np.dtype([("site", "<u4"), ("probe", "<u4")])
# One function that has a probe; its name starts at `name` in the NUL-terminated string table.
FUNCTION = np.dtype([("address", "<u8"), ("size", "<u8"), ("name", "<u8")])
# The first identifiers of a function's probes, beside its record: of fbt's two, and of kinst's, one a byte.
NUMBER = np.dtype([("fbt", "<u8"), ("kinst", "<u8")])
NOT_NUMBERED = np.zeros(0, NUMBER)
# One stretch of jumps, one after the other; they are in address order: 12 bytes.
JUMPS = np.dtype([("address", "<u8"), ("size", "<u4")])
NO_JUMPS = np.zeros(0, JUMPS)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a patched image says about itself. Addresses are link addresses."""

    tool_version: str
    original_sha256: str
    original_size: int
    arch: str
    module: str
    method: str  # a `Method`
    options: tuple[str, ...]  # the probe specifications, as the user wrote them
    trampolines: tuple[int, int]  # address and size of the trampoline segment
    restore: tuple[tuple[int, bytes], ...]  # (file offset, original bytes) of changed header fields
    sites: NDArray[np.void]  # SITE
    probes: NDArray[np.void]  # PROBE
    enablings: NDArray[np.void]  # ENABLING
    functions: NDArray[np.void]  # FUNCTION
    names: bytes  # string table of the functions' names
    static: tuple[StaticProbe, ...] = ()  # those that have probes
    numbers: NDArray[np.void] = field(default_factory=lambda: NOT_NUMBERED)  # NUMBER, one a function
    static_numbers: tuple[int, ...] = ()  # identifiers of `static`
    next_identifier: int = FIRST_PROBE_ID  # after all that probes of the image can have
    symbols: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, SYMBOL))  # names given beside the image's own
    strings: bytes = b""  # their string table
    inlined: tuple[InlinedName, ...] = ()  # what names that mean inlined copies came to
    patches: tuple[Patch, ...] = ()  # in address order; what the originals of sites already have
    standalone: Standalone | None = None  # of an image whose sites are jumps
    forms: bytes = b""  # of a mix, what each of its sites keeps: 0 if it counts, else a form of its records, from 1
    jumps: NDArray[np.void] = field(default_factory=lambda: NO_JUMPS)  # JUMPS: what it has instead of breakpoints
    jump_originals: bytes = b""  # what was there before, one after the other
    jump_code: bytes = b""  # what is there now

    @property
    def given(self) -> Symbols:
        """Names that came from elsewhere when the image was patched: a System.map, a debug file."""
        return symbols_of(self.symbols, self.strings)

    @property
    def identifiers(self) -> NDArray[np.int64]:
        """The identifier of each probe, by row; one names the same probe whatever else is patched."""
        probes = self.probes
        kinds, offsets = probes["kind"], probes["offset"].astype(np.int64)
        numbers = self.numbers[probes["function"]]
        is_return = kinds == ProbeKind.FBT_RETURN
        found: NDArray[np.int64] = numbers["fbt"].astype(np.int64) + is_return
        is_kinst, is_static = kinds == ProbeKind.KINST, kinds == ProbeKind.SDT
        found[is_kinst] = numbers["kinst"][is_kinst].astype(np.int64) + offsets[is_kinst]
        found[is_static] = np.array(self.static_numbers, np.int64)[offsets[is_static]]
        return found

    @property
    def is_deferred(self) -> NDArray[np.bool_]:
        """Which sites are left to the guest to write: the file and memory keep its bytes there."""
        deferred: NDArray[np.bool_] = self.sites["verdict"] == Verdict.DEFER
        return deferred

    @property
    def patched(self) -> NDArray[np.void]:
        """The sites at which the file has breakpoints."""
        if self.standalone is not None:
            return self.sites[:0]
        deferred = self.is_deferred
        return self.sites[~deferred] if deferred.any() else self.sites

    @property
    def site_forms(self) -> NDArray[np.intp]:
        """For each site of a standalone image, which of `Standalone.record_forms` it records; -1: it counts."""
        assert self.standalone is not None, "others keep nothing"
        return self.standalone.forms_at(len(self.sites), self.forms)

    def function_name(self, row: int) -> str:
        """Name of the function in `row` of `functions`."""
        start = int(self.functions["name"][row])
        return self.names[start : self.names.index(b"\0", start)].decode()

    def probe_name(self, row: int) -> str:
        """The probe in `row` of `probes` as DTrace spells it, for example ``kinst:kernel:vm_fault:12``."""
        return ":".join(self.probe_fields(row))

    def probe_fields(self, row: int) -> tuple[str, str, str, str]:
        """Provider, module, function and name of the probe in `row` of `probes`."""
        kind, function, offset = self.probes[row].tolist()
        if kind == ProbeKind.SDT:
            static = self.static[offset]
            return static.provider, static.module or self.module, static.function, static.name
        provider, name = PROBE_FORM[kind]
        return provider, self.module, self.function_name(function), name or str(offset)


def probe_keys(
    function: NDArray[np.unsignedinteger], kind: NDArray[np.unsignedinteger], offset: NDArray[np.unsignedinteger]
) -> NDArray[np.uint64]:
    """One number a probe, ascending by function, kind and offset: the order of a manifest's probes."""
    high = function.astype(np.uint64) << np.uint64(34) | kind.astype(np.uint64) << np.uint64(32)
    result: NDArray[np.uint64] = high | offset
    return result


# Provider and name of each kind of probe; kinst's name is the offset, static probes have their own.
PROBE_FORM = {
    ProbeKind.KINST: ("kinst", ""),
    ProbeKind.FBT_ENTRY: ("fbt", "entry"),
    ProbeKind.FBT_RETURN: ("fbt", "return"),
}
