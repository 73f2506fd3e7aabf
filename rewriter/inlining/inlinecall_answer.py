"""A function and an image -> its inlined copies, from a cached answer or from debug information.

Nothing here imports LIEF, which takes 0.4 s: an answer about a vmlinux takes less than that.
"""

from pathlib import Path

from kinst.rewriter.inlining.inlinecall import inlinecall_values
from kinst.rewriter.inlining.inlinecall_cache import KeptAnswers, Values
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.elf.file import ElfFile, open_elf
from kinst.targets.errors import ManifestError, ProbeError
from kinst.targets.manifest.seal import SECTION, opened


def find_answer(
    function: str, path: Path, debug_file: Path | None, *, use_cache: bool
) -> tuple[Values, tuple[str, ...]]:
    """What is known about a function, and the errors of units that may say more.

    Raises:
        ImageError, ManifestError: the image or its debug information cannot be read.
        ProbeError: no function has that name.
    """
    elf = open_elf(path)
    kept = KeptAnswers(elf, debug_file) if use_cache else None
    known = None if kept is None else kept.read(function)
    if known is not None:
        return known, ()
    _check_manifest(elf)
    debug = find_debug(elf, debug_file)
    search = InlineSearch(elf, debug)
    matching = search.find_readable(function)
    if not matching.found and not matching.damage and not search.exists(function):
        raise ProbeError(f"{function}: no function of that name in the debug information of {path}")
    values = inlinecall_values(matching.found, search.caller_at)
    if kept is not None and not matching.damage:
        kept.write(function, values, debug.path)
    return values, matching.damage


def _check_manifest(elf: ElfFile) -> None:
    """Check the manifest of a patched image. It is not needed, but a file that is damaged there may be damaged
    elsewhere."""
    for section in elf.sections:
        if section.name == SECTION:
            try:
                opened(elf.data[section.offset : section.offset + section.size].data)
            except ManifestError as error:
                raise ManifestError(f"{elf.path}: {error}") from error
