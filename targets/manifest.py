"""The manifest, packed into the section `.kinst.manifest` and read back. Its values: `kinst.targets.manifest_records`.

The packed form, all little-endian: the header of `kinst.targets.manifest_seal`, then

    JSON head: every scalar field and the number of records of each kind
    sites, probes, enablings, functions, names, numbers, symbols, strings: each starts at a multiple of 8

The content is chosen by whoever made the file. Digests are compared first; then every number and text is bounded.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.symbols import SYMBOL
from kinst.targets.errors import ManifestError
from kinst.targets.image import Image
from kinst.targets.manifest_bounds import check_image, check_manifest, check_tables
from kinst.targets.manifest_head import packed_head, read_head
from kinst.targets.manifest_records import (
    ENABLING,
    FUNCTION,
    NOT_NUMBERED,
    NUMBER,
    PROBE,
    PROBE_FORM,
    SITE,
    Manifest,
    ProbeKind,
    probe_keys,
)
from kinst.targets.manifest_seal import FORMAT_VERSION, SECTION, opened, sealed
from kinst.targets.manifest_values import number_of
from kinst.targets.method import Method

__all__ = [
    "ENABLING",
    "FORMAT_VERSION",
    "FUNCTION",
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
}  # fmt: skip
_SINCE: Final = {"numbers": 3, "symbols": 3, "strings": 3}  # the first format with a table
_DAMAGES: Final = (ValueError, LookupError, TypeError, OverflowError, RecursionError)


def pack_manifest(manifest: Manifest) -> bytes:
    """The manifest as bytes, as they stand in the section."""
    return b"".join(manifest_parts(manifest))


def manifest_parts(manifest: Manifest) -> list[memoryview]:
    """The packed manifest in pieces, the large ones without a copy: a kernel's has hundreds of megabytes."""
    parts: list[memoryview] = []
    for name in _RECORDS:
        data = np.ascontiguousarray(_table(getattr(manifest, name))).view(np.uint8).data
        parts += [data, memoryview(bytes(-len(data) % 8))]
    return sealed(packed_head(manifest, tuple(_RECORDS)), *parts)


def _table(content: NDArray[np.void] | bytes) -> NDArray[np.void] | NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content


def unpack_manifest(data: bytes | memoryview) -> Manifest:
    """The manifest in `data`; its arrays are read-only views of `data`.

    Raises:
        ManifestError: the manifest is damaged, or a newer version of the tool wrote it.
    """
    version, head, body = opened(memoryview(data).cast("B"))
    try:
        fields, counts = read_head(head)
        tables = dict(_tables(version, body, counts))
    except _DAMAGES as error:
        raise ManifestError(f"manifest: damaged: {_why(error)}") from error
    check_tables(tables)
    fields |= tables | {name: tables[name].tobytes() for name in ("names", "strings")}
    manifest = Manifest(**fields)
    check_manifest(manifest)
    return manifest


def _why(error: Exception) -> str:
    """Of a field that is missing Python says only the name."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return "values within values" if isinstance(error, RecursionError) else str(error)


def _tables(version: int, view: memoryview, counts: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[np.void]]]:
    for name, dtype in _RECORDS.items():
        count = 0 if version < _SINCE.get(name, 1) else counts[name]
        size = number_of(count, len(view) // dtype.itemsize + 1) * dtype.itemsize
        # np.frombuffer refuses an empty buffer.
        yield name, np.frombuffer(view[:size], dtype) if size else np.zeros(0, dtype)
        view = view[size + -size % 8 :]
    if len(view):
        raise ValueError("bytes follow its last table")


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
        manifest = unpack_manifest(image.data[section.offset : section.offset + section.size].data)
        check_image(manifest, image)
    except ManifestError as error:
        raise ManifestError(f"{image.path}: {error}") from error
    return manifest
