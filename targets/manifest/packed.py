"""The manifest, packed into the section `.kinst.manifest` and read back. Its values: `kinst.targets.manifest.records`.

The packed form, all little-endian: the header of `kinst.targets.manifest.seal`, then

    JSON head: every scalar field and the number of records of each kind
    sites, probes, enablings, functions, names, numbers, symbols, strings, and of jumps their places, what was there
    and their code; and in format 10 alone, of a standalone image whose sites keep different things, the form of each
    site: see `kinst.targets.manifest.tables`

The content is untrusted. Digests are compared first; then every number and text is bounded.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.symbols import SYMBOL
from kinst.targets.errors import ManifestError
from kinst.targets.image import Image
from kinst.targets.manifest.bounds import check_image, check_manifest, check_tables
from kinst.targets.manifest.head import packed_head, read_head
from kinst.targets.manifest.records import (
    ENABLING,
    FUNCTION,
    JUMPS,
    NOT_NUMBERED,
    NUMBER,
    PROBE,
    PROBE_FORM,
    SITE,
    Manifest,
    ProbeKind,
    probe_keys,
)
from kinst.targets.manifest.seal import FORMAT_VERSION, MIXED_VERSION, SECTION, opened, sealed
from kinst.targets.manifest.tables import LEAST_BOUND, packed_table, read_tables
from kinst.targets.method import Method

__all__ = [
    "ENABLING",
    "FORMAT_VERSION",
    "FUNCTION",
    "JUMPS",
    "NOT_NUMBERED",
    "NUMBER",
    "PROBE",
    "PROBE_FORM",
    "SECTION",
    "SITE",
    "TEXT_SECTION",
    "Manifest",
    "Method",
    "ProbeKind",
    "find_manifest",
    "manifest_parts",
    "pack_manifest",
    "probe_keys",
    "unpack_manifest",
]

TEXT_SECTION: Final = ".kinst.text"
_RECORDS: Final = {
    "sites": SITE, "probes": PROBE, "enablings": ENABLING, "functions": FUNCTION, "names": np.dtype("u1"),
    "numbers": NUMBER, "symbols": SYMBOL, "strings": np.dtype("u1"),
    "jumps": JUMPS, "jump_originals": np.dtype("u1"), "jump_code": np.dtype("u1"), "forms": np.dtype("u1"),
}  # fmt: skip
_TEXTS: Final = ("names", "strings", "jump_originals", "jump_code", "forms")  # whose records are bytes
_FORMS: Final = "forms"  # the table that only a mix has
# Bytes of tables for each byte of the file: a site has 40 and more there, and takes an instruction and a slot of the
# file.
_MOST_PER_BYTE: Final = 16
_DAMAGES: Final = (ValueError, LookupError, TypeError, OverflowError, RecursionError)


def pack_manifest(manifest: Manifest) -> bytes:
    """The manifest as bytes, as they stand in the section."""
    return b"".join(manifest_parts(manifest))


def manifest_parts(manifest: Manifest, like: memoryview | None = None) -> list[memoryview]:
    """The packed manifest in pieces. `like` is how a file has it: versions of zstd compress differently. If it says the
    same, the file's bytes are as good as ours."""
    names = tuple(name for name in _RECORDS if name != _FORMS or manifest.forms)
    tables = (memoryview(packed_table(_table(getattr(manifest, name)))) for name in names)
    version = MIXED_VERSION if manifest.forms else FORMAT_VERSION
    parts = sealed(packed_head(manifest, names), *tables, version=version)
    if like is None or b"".join(parts) == like or not _is_like(like, manifest, parts[1]):
        return parts
    return [like]


def _is_like(data: memoryview, manifest: Manifest, head: memoryview) -> bool:
    """Whether a packed manifest differs from ours only in the compression of its tables; `head` is of ours."""
    tables = {name: _table(getattr(manifest, name)) for name in _RECORDS}
    most = sum(table.nbytes for table in tables.values())
    try:
        said, body = opened(data)
        found = dict(read_tables(body, {_FORMS: 0, **read_head(said)[1]}, _RECORDS, most))
    except (ManifestError, *_DAMAGES):
        return False
    return said == head and all(np.array_equal(found[name], table) for name, table in tables.items())


def _table(content: NDArray[np.void] | bytes) -> NDArray[np.void] | NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content


def unpack_manifest(data: bytes | memoryview, most: int = LEAST_BOUND) -> Manifest:
    """The manifest in `data`; its arrays are read-only. Its tables may have `most` bytes.

    Raises:
        ManifestError: the manifest is damaged, or of another format.
    """
    head, body = opened(memoryview(data).cast("B"))
    try:
        fields, counts = read_head(head)
        tables = dict(read_tables(body, {_FORMS: 0, **counts}, _RECORDS, most))
    except _DAMAGES as error:
        raise ManifestError(f"manifest: damaged: {_why(error)}") from error
    check_tables(tables)
    fields |= tables | {name: tables[name].tobytes() for name in _TEXTS}
    manifest = Manifest(**fields)
    check_manifest(manifest)
    return manifest


def _why(error: Exception) -> str:
    """What is wrong. Of a missing field Python gives only the name."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return "values within values" if isinstance(error, RecursionError) else str(error)


def most_of(image: Image) -> int:
    """Bytes that the tables of an image's manifest may have."""
    return max(LEAST_BOUND, _MOST_PER_BYTE * len(image.data))


def find_manifest(image: Image) -> Manifest | None:
    """The manifest that the image carries; None where the image is not patched.

    Raises:
        ManifestError: as `unpack_manifest`, or it is not of this image; it names the file.
    """
    section = image.section(SECTION)
    if section is None:
        if image.section(TEXT_SECTION) is not None:
            raise ManifestError(f"{image.path}: manifest: damaged: there are trampolines, and no manifest")
        return None
    try:
        data = image.data[section.offset : section.offset + section.size].data
        manifest = unpack_manifest(data, most_of(image))
        check_image(manifest, image)
    except ManifestError as error:
        raise ManifestError(f"{image.path}: {error}") from error
    return manifest
