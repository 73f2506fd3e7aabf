"""The treaty between rewriter and runtime: what was patched, as a value; packed into the section `.kinst.manifest`.

The runtime needs nothing else to run a patched image, and never asks how a patch was decided.

The packed form, all little-endian:

    0   8  magic "KINSTMAN"
    8   4  format version
   12   4  CRC-32 of the 12 bytes before it and of everything after it
   16   8  size of the whole manifest
   24   4  size of the JSON head that follows, padded with blanks to a multiple of 8
   28   4  zero
   32      JSON head: every scalar field and the number of records of each kind
           sites, probes, enablings, functions, names, numbers, symbols, strings: each starts at a multiple of 8

Every version keeps the first 16 bytes, so that a newer format can be told from a damaged one.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinst.targets.errors import ManifestError
from kinst.targets.image import Image
from kinst.targets.inlined_names import InlinedName, inlined_names, inlined_values
from kinst.targets.instruction import Verdict
from kinst.targets.static_probes import PlaceKind, StaticPlace, StaticProbe
from kinst.targets.symbols import SYMBOL, Symbols, symbols_of

MAGIC = b"KINSTMAN"
FORMAT_VERSION = 3  # 2: static probes; 3: identifiers of probes, names that the image does not have, deferred sites
SECTION = ".kinst.manifest"
# Identifiers of probes: 1, 2, 3 are dtrace:::BEGIN, END and ERROR, as in DTrace; then timers; from FIRST_PROBE_ID on
# what the image has, and behind it what other providers make.
TIMER_IDS = range(4, 1004)
FIRST_PROBE_ID = TIMER_IDS.stop


class Method(StrEnum):
    """`--method`: how displaced instructions are carried out. Manifests of the first version say "trap" for AUTO."""

    AUTO = "auto"  # in trampolines, but for those that must be emulated
    EMULATE = "emulate"  # emulated wherever that can be


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
        ("trampoline", "<u8"),  # link address of its slot
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
_MOST_IDENTIFIERS = 1 << 48


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a patched image says of itself. Addresses are link addresses."""

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
    next_identifier: int = FIRST_PROBE_ID  # behind all that probes of the image can have
    symbols: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, SYMBOL))  # names given beside the image's own
    strings: bytes = b""  # their string table
    inlined: tuple[InlinedName, ...] = ()  # what names that mean inlined copies came to

    @property
    def given(self) -> Symbols:
        """Names that came from elsewhere when the image was patched: a System.map, a debug file."""
        return symbols_of(self.symbols, self.strings)

    @property
    def is_numbered(self) -> bool:
        """Whether it says what the identifiers of its probes are: formats before 3 did not."""
        return len(self.numbers) == len(self.functions) and len(self.static_numbers) == len(self.static)

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
        """Which sites are the guest's to write: the file and memory keep its bytes there."""
        deferred: NDArray[np.bool_] = self.sites["verdict"] == Verdict.DEFER
        return deferred

    @property
    def patched(self) -> NDArray[np.void]:
        """The sites at which the file has breakpoints."""
        deferred = self.is_deferred
        return self.sites[~deferred] if deferred.any() else self.sites

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


# Provider and name of each kind of probe; kinst's name is the offset, static probes have their own.
PROBE_FORM = {
    ProbeKind.KINST: ("kinst", ""),
    ProbeKind.FBT_ENTRY: ("fbt", "entry"),
    ProbeKind.FBT_RETURN: ("fbt", "return"),
}

_FIRST = struct.Struct("<8sI")  # then the checksum
_SIZES = struct.Struct("<QII")
_CHECKED = _FIRST.size + 4
_HEAD = _CHECKED + _SIZES.size
_RECORDS = {
    "sites": SITE, "probes": PROBE, "enablings": ENABLING, "functions": FUNCTION, "names": np.dtype("u1"),
    "numbers": NUMBER, "symbols": SYMBOL, "strings": np.dtype("u1"),
}  # fmt: skip
_TEXTS = ("names", "strings")
_SCALARS = {
    "tool_version": str,
    "original_sha256": str,
    "original_size": int,
    "arch": str,
    "module": str,
    "method": str,
}


def pack_manifest(manifest: Manifest) -> bytes:
    """The manifest as bytes, as they stand in the section."""
    return b"".join(manifest_parts(manifest))


def manifest_parts(manifest: Manifest) -> list[memoryview]:
    """The packed manifest in pieces, the large ones without a copy: a kernel's has hundreds of megabytes."""
    tables = (_table(getattr(manifest, name)) for name in _RECORDS)
    body = [_head(manifest)]
    for table in tables:
        data = np.ascontiguousarray(table).view(np.uint8).data
        body += [data, memoryview(bytes(-len(data) % 8))]
    size = _HEAD + sum(len(part) for part in body)
    first, sizes = _FIRST.pack(MAGIC, FORMAT_VERSION), _SIZES.pack(size, len(body[0]), 0)
    check = _checksum(first, sizes, *body)
    return [memoryview(first + check.to_bytes(4, "little") + sizes), *body]


def _table(content: NDArray[np.void] | bytes) -> NDArray[np.void] | NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content


def _checksum(*parts: bytes | memoryview) -> int:
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return check


def _head(manifest: Manifest) -> memoryview:
    head = {name: getattr(manifest, name) for name in _SCALARS}
    head |= {
        "options": manifest.options,
        "trampolines": manifest.trampolines,
        "restore": [(offset, data.hex()) for offset, data in manifest.restore],
        "records": {name: len(getattr(manifest, name)) for name in _RECORDS},
        "next_identifier": manifest.next_identifier,
        "static_numbers": manifest.static_numbers,
        "inlined": inlined_values(manifest.inlined),
    }
    if manifest.static:
        head["static"] = [asdict(probe) for probe in manifest.static]
    text = json.dumps(head, separators=(",", ":"), sort_keys=True).encode()
    return memoryview(text + b" " * (-len(text) % 8))


def unpack_manifest(data: bytes | memoryview) -> Manifest:
    """The manifest in `data`; its arrays are read-only views of `data`.

    Raises:
        ManifestError: the manifest is damaged, or a newer version of the tool wrote it.
    """
    view = memoryview(data).cast("B")
    head, tables = _checked(view)
    try:
        manifest = Manifest(
            **{name: kind(head[name]) for name, kind in _SCALARS.items()},
            options=tuple(map(str, head["options"])),
            trampolines=(int(head["trampolines"][0]), int(head["trampolines"][1])),
            restore=tuple((int(offset), bytes.fromhex(text)) for offset, text in head["restore"]),
            sites=tables["sites"],
            probes=tables["probes"],
            enablings=tables["enablings"],
            functions=tables["functions"],
            names=tables["names"].tobytes(),
            static=tuple(_static(value) for value in head.get("static", ())),
            numbers=tables["numbers"],
            symbols=tables["symbols"],
            strings=tables["strings"].tobytes(),
            inlined=inlined_names(head.get("inlined", ())),
            static_numbers=tuple(map(int, head.get("static_numbers", ()))),
            next_identifier=int(head.get("next_identifier", FIRST_PROBE_ID)),
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ManifestError(f"manifest: damaged: {error}") from error
    _check_bounds(manifest)
    return manifest


def _static(value: Mapping[str, Any]) -> StaticProbe:
    places = tuple(
        StaticPlace(
            int(place["address"]), tuple(map(str, place["operands"])), PlaceKind(place["kind"]), int(place["target"])
        )
        for place in value["places"]
    )
    provider, module, function, name = (str(value[field]) for field in ("provider", "module", "function", "name"))
    semaphores, declared = tuple(map(int, value["semaphores"])), tuple(map(str, value["declared"]))
    words = int(value["id_word"]), int(value["switch"])
    return StaticProbe(provider, module, function, name, places, semaphores, declared, *words)


def _check_bounds(manifest: Manifest) -> None:
    """A site without a slot in the segment, or header bytes outside the original, would be believed and written."""
    if any(offset < 0 or offset + len(data) > manifest.original_size for offset, data in manifest.restore):
        raise ManifestError("manifest: damaged: it restores bytes that the original did not have")
    static = manifest.probes["offset"][manifest.probes["kind"] == ProbeKind.SDT]
    if len(static) and int(static.max()) >= len(manifest.static):
        raise ManifestError("manifest: damaged: probes refer to static probes that do not exist")
    if any(not 0 <= address < 1 << 64 for probe in manifest.static for address in _addresses(probe)):
        raise ManifestError("manifest: damaged: a static probe that cannot be")
    known = [
        manifest.next_identifier,
        *manifest.static_numbers,
        *(int(manifest.numbers[name].max(initial=0)) for name in NUMBER.names or ()),
    ]
    if not all(0 <= one < _MOST_IDENTIFIERS for one in known):
        raise ManifestError("manifest: damaged: identifiers that cannot be")
    sites, (address, size) = manifest.sites, manifest.trampolines
    if not len(sites):
        return
    if not 0 <= address < 1 << 64 or int((sites["trampoline"] - np.uint64(address)).max()) >= size:
        raise ManifestError("manifest: damaged: a trampoline outside its segment")
    is_possible = np.isin(sites["verdict"], (Verdict.COPY, Verdict.EMULATE, Verdict.DEFER)).all()
    if not 1 <= int(sites["size"].min()) <= int(sites["size"].max()) <= 16 or not is_possible:
        raise ManifestError("manifest: damaged: a site that cannot be")


def _addresses(probe: StaticProbe) -> Iterator[int]:
    yield from (*probe.semaphores, probe.id_word, probe.switch)
    for place in probe.places:
        yield from (place.address, place.target)


def find_manifest(image: Image) -> Manifest | None:
    """The manifest that the image carries; None where the image is not patched.

    Raises:
        ManifestError: as `unpack_manifest`.
    """
    section = image.section(SECTION)
    if section is None:
        return None
    data = image.data[section.offset : section.offset + section.size].data
    return unpack_manifest(data)


def _checked(view: memoryview) -> tuple[Mapping[str, Any], dict[str, NDArray[np.void]]]:
    """JSON head and record tables, or ManifestError."""
    if len(view) < _HEAD or view[:8] != MAGIC:
        raise ManifestError("manifest: damaged: it does not begin with its magic number")
    _, version = _FIRST.unpack_from(view)
    if _checksum(view[: _FIRST.size], view[_CHECKED:]).to_bytes(4, "little") != view[_FIRST.size : _CHECKED]:
        raise ManifestError("manifest: damaged: its checksum does not match")
    if version > FORMAT_VERSION:
        raise ManifestError(
            f"manifest: format {version} is newer than {FORMAT_VERSION}: a newer kinst-rewrite wrote it"
        )
    size, head_size, zero = _SIZES.unpack_from(view, _CHECKED)
    if version < 1 or size != len(view) or zero:
        raise ManifestError("manifest: damaged: its header contradicts its size")
    try:
        head = json.loads(bytes(view[_HEAD : _HEAD + head_size]))
        tables = dict(_tables(view[_HEAD + head_size :], head["records"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"manifest: damaged: {error}") from error
    _check_references(tables)
    _check_order(tables)
    return head, tables


def _tables(view: memoryview, counts: Mapping[str, int]) -> Iterator[tuple[str, NDArray[np.void]]]:
    for name, dtype in _RECORDS.items():
        size = counts.get(name, 0) * dtype.itemsize
        if size < 0 or size > len(view):
            raise ManifestError(f"manifest: damaged: {size} bytes of {name} do not fit")
        # np.frombuffer refuses an empty buffer.
        yield name, np.frombuffer(view[:size], dtype) if size else np.zeros(0, dtype)
        view = view[size + -size % 8 :]
    if len(view):
        raise ManifestError("manifest: damaged: bytes follow its last table")


def _check_references(tables: Mapping[str, NDArray[np.void]]) -> None:
    """A record that points outside its table would crash the runtime later and far away."""
    pairs = (
        ("sites", "function", "functions"),
        ("probes", "function", "functions"),
        ("enablings", "site", "sites"),
        ("enablings", "probe", "probes"),
        ("functions", "name", "names"),
        ("symbols", "name", "strings"),
    )
    for table, column, target in pairs:
        if len(tables[table]) and int(tables[table][column].max()) >= len(tables[target]):
            raise ManifestError(f"manifest: damaged: {table} refer to {target} that do not exist")
    if any(len(tables[name]) and tables[name][-1] for name in _TEXTS):
        raise ManifestError("manifest: damaged: a string table does not end")
    if len(tables["probes"]) and int(tables["probes"]["kind"].max()) >= len(ProbeKind):
        raise ManifestError("manifest: damaged: a kind of probe that does not exist")


def _check_order(tables: Mapping[str, NDArray[np.void]]) -> None:
    addresses, order = tables["sites"]["address"], tables["enablings"]["site"]
    if not (addresses[:-1] < addresses[1:]).all() or not (order[:-1] <= order[1:]).all():
        raise ManifestError("manifest: damaged: its records are out of order")
