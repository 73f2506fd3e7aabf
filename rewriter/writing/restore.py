"""A patched image -> the original, byte for byte, and proof that it is: its SHA-256 as the manifest has it."""

import hashlib
import tempfile
from dataclasses import replace
from io import BufferedRandom
from pathlib import Path
from typing import Protocol

from kinst.rewriter.patched_bytes import placed
from kinst.rewriter.shell.progress import Progress, silent
from kinst.rewriter.writing.write import copy, mode_of, new_file, overwritten, put_originals, touched_code, write_at
from kinst.targets.errors import ManifestError
from kinst.targets.image import Image, open_image
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.packed.reading import AS_IT_SAYS, Reading


def restore(image: Image, manifest: Manifest, out: Path, *, progress: Progress = silent) -> None:
    """Write the original image.

    Raises:
        ManifestError: the result is not the original, since the patched file was changed after it was written. Of a
            file that is no ELF file this was found when it was read.
    """
    with new_file(out, mode_of(image.path)) as file:
        if image.container is not None:
            file.write(image.container.original.data)
        else:
            write_original(image, manifest, file, progress)


class Reader(Protocol):
    """Reads an image file: `open_image`, or `open_to_run`."""

    def __call__(self, path: Path, *, module: str | None = None, reading: Reading = AS_IT_SAYS) -> Image:
        """Raises ImageError."""
        ...


def open_original(
    path: Path,
    module: str | None = None,
    progress: Progress = silent,
    read: Reader = open_image,
    reading: Reading = AS_IT_SAYS,
) -> tuple[Image, Manifest | None]:
    """The original image, and the manifest if the file is a patched one; `read` reads the files.

    The original of a patched file is in a temporary file without a name; its `path` is that of the patched file.
    """
    image = read(path, module=module, reading=reading)
    manifest = find_manifest(image)
    if manifest is None:
        return image, None
    with tempfile.NamedTemporaryFile(prefix="kinst-", suffix=".elf") as file:
        with Path(file.name).open("r+b") as writable:
            write_original(image, manifest, writable, progress)
        original = read(Path(file.name), module=module or manifest.module)
    return replace(original, path=path, packing=image.packing, container=image.container), manifest


def write_original(image: Image, manifest: Manifest, file: BufferedRandom, progress: Progress = silent) -> None:
    """Undo sites, jumps, patches and headers, and check the result."""
    if manifest.original_size > len(image.data):
        raise ManifestError(f"{image.path}: truncated: the original had {manifest.original_size} bytes")
    copy(image.data[: manifest.original_size], file, progress)
    sites = manifest.patched
    for offset, code, at, rows in touched_code(image, sites["address"]):
        put_originals(code, at, sites[rows], image.facts)
        write_at(file, offset, code.data)
    for offset, code in overwritten(image, manifest.jumps, manifest.jump_originals):
        write_at(file, offset, code.data)
    for offset, patch in placed(image, manifest.patches):  # sites after patches: a jump may cover what was patched
        write_at(file, offset, patch.original)
    for offset, data in manifest.restore:
        write_at(file, offset, data)
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != manifest.original_sha256:
        raise ManifestError(
            f"{image.path}: cannot be restored: its SHA-256 would be {digest[:16]}..., the original's is "
            f"{manifest.original_sha256[:16]}...: the file was changed after it was patched"
        )
