"""Probe names -> what they mean in an image that is planned later, kept from one run to the next.

To decode all functions of Linux for that takes two seconds; QEMU boots it in one.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, replace
from pathlib import Path
from typing import Final

import numpy as np

import kinst.rewriter
import kinst.targets
from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.rewriting import Source
from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.rewriter.shell.kept_files import code_state, file_digest, forget_beyond, kept_folder
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import KinstError
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest, most_of, pack_manifest, unpack_manifest
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass

FOLDER: Final = "live"
_KEPT: Final = 256 << 20  # bytes of plans; that of all functions of Linux has one MB
_SUFFIX: Final = ".plan"
_LENGTH: Final = 4  # bytes of the length of what is said of names, which stands before the manifest


@dataclass(frozen=True, slots=True)
class LatePlan:
    """What is known before an image is planned. `digest` names all that this follows from; empty: nothing does.
    `reasons`: for names without a single site, why. `resolution` decodes what it needs if this was kept."""

    image: Image
    manifest: Manifest
    refusals: tuple[str, ...]  # a line for each name of which sites were refused
    digest: str
    reasons: Mapping[ProbeName, str]
    resolution: Callable[[], Resolution]


def digest_of(source: Source, names: Sequence[ProbeName]) -> str:
    """The digest of the files and names that a plan follows from, and of our code; empty if there is nowhere to keep
    one, or a file cannot be read twice."""
    folder = kept_folder(FOLDER)
    if folder is None:
        return ""
    named = (source.path, source.symbols, source.debug_file)
    digests = [file_digest(path, folder) for path in named if path is not None]
    if None in digests:
        return ""
    state = code_state((kinst.rewriter, kinst.targets))
    which = [path is not None for path in named]
    asked = source.path.name, source.module, source.code, source.reading, [str(name) for name in names]
    all_of_it = digests, which, asked, state
    return hashlib.sha256(repr(all_of_it).encode()).hexdigest()


def kept_plan(image: Image, digest: str, resolution: Callable[[], Resolution]) -> LatePlan | None:
    """The plan of that digest; None if there is none, or it is damaged."""
    path = _path(digest)
    with suppress(OSError, KinstError, ValueError):
        data = memoryview(b"" if path is None else path.read_bytes())
        start = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
        lines, rows = json.loads(bytes(data[_LENGTH:start]))
        reasons = {ProbeName(*fields): reason for *fields, reason in rows}
        manifest = _with_slots(unpack_manifest(data[start:], most_of(image)), 0)
        found = LatePlan(image, manifest, tuple(lines), digest, reasons, resolution)
        assert path is not None, "it was read"
        path.touch()  # `forget_beyond` sorts by it
        return found
    return None


def new_plan(
    image: Image, digest: str, resolution: Resolution, refusals: Sequence[str], reasons: Mapping[ProbeName, str]
) -> LatePlan:
    """The plan of a resolution, which the next run finds if there is a digest."""
    manifest, path = manifest_of(resolution)[0], _path(digest)
    if path is not None:
        rows = [(*astuple(name), reason) for name, reason in reasons.items()]
        lines = json.dumps([list(refusals), rows]).encode()
        packed = pack_manifest(_with_slots(manifest, arch_by_name(manifest.arch).slot_size))
        with suppress(OSError):
            with fresh_file(path) as file:
                file.write(len(lines).to_bytes(_LENGTH, "little") + lines + packed)
            forget_beyond(path.parent, _SUFFIX, _KEPT)
    return LatePlan(image, manifest, tuple(refusals), digest, reasons, lambda: resolution)


def _path(digest: str) -> Path | None:
    folder = kept_folder(FOLDER) if digest else None
    return None if folder is None else folder / f"{digest[:32]}{_SUFFIX}"


def _with_slots(manifest: Manifest, size: int) -> Manifest:
    """The manifest with slots of some size in the place of trampolines, which are not planned yet: what a manifest says
    is checked when it is read."""
    sites = manifest.sites.copy()
    sites["trampoline"] = np.arange(len(sites)) * size
    return replace(manifest, sites=sites, trampolines=(0, len(sites) * size))
