"""Names of probes -> the files of the kernel modules that they mean: of --module, in its folders, in the --initrd."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kinst.rewriter.rewriting import Opened, Source, open_source
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import ImageError, KinstError, UsageError
from kinst.targets.image import Image, open_to_run
from kinst.targets.packed.cpio import file_system
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.tracing.request import Request
    from kinst.targets.manifest.packed import Manifest
    from kinst.targets.probe import ProbeName

_ENDING: Final = re.compile(r"\.ko(\.(gz|xz|zst|bz2|lz4|lzma))?$")
_NAME: Final = b"name="


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A module that the guest may load, in a file."""

    name: str  # what programs call it
    kernel_name: str  # what the kernel calls it
    where: str  # where the file is, for messages
    opened: Opened  # the original
    in_file: Image  # as the file has it, with the breakpoints that may be in it

    @property
    def manifest(self) -> "Manifest | None":
        """What the file was patched with."""
        return self.opened.manifest


def module_files(request: "Request", kernel: Image, names: Sequence["ProbeName"]) -> tuple[ModuleFile, ...]:
    """The modules that names of probes mean, by which the kernel's own are not meant as well.

    Raises:
        ImageError, ManifestError, UsageError: a file of --module cannot be read, or is for another machine; or nothing
            could handle their probes.
    """
    meant = [name for name in names if name.module and not name.matches_image(kernel.module)]
    if not meant:
        return ()
    given = dict(request.modules)
    found = [_opened(name, path, str(path)) for name, path in request.modules if _is_meant(name, meant)]
    for one in chain(_in_folders(request, meant), _in_initrd(request, meant)):
        if one.name not in {*given, *(other.name for other in found)}:
            found.append(one)
    if found and request.on is not None:
        raise UsageError(f"{found[0].name}: is a module, and under QEMU only IMAGE has probes: leave it out, or --on")
    for one in found:
        if one.in_file.facts.name != kernel.facts.name:
            raise UsageError(
                f"{one.where}: is a module for {one.in_file.facts.name}, the image is for {kernel.facts.name}"
            )
    return tuple(one for one in found if one.in_file.kind is FileKind.REL)


def named(files: Sequence[ModuleFile]) -> Mapping[str, Image]:
    """Their images by name, for their types."""
    return {one.name: one.opened.image for one in files}


def _is_meant(module: str, names: Sequence["ProbeName"]) -> bool:
    return any(name.names_module(module) for name in names)


def _opened(name: str, path: Path, where: str) -> ModuleFile:
    opened = open_source(Source(path, name), read=open_to_run)
    in_file = opened.image if opened.manifest is None else open_to_run(path, module=name)
    return ModuleFile(name, kernel_name(opened.image) or name, where, opened, in_file)


def _in_folders(request: "Request", names: Sequence["ProbeName"]) -> Iterator[ModuleFile]:
    """Those in the folders of --module, at any depth. Raises ImageError: one cannot be read."""
    for folder in request.module_folders:
        for path in sorted(folder.rglob("*.ko*")):
            name = _name_of(path.name)
            if name is not None and path.is_file() and _is_meant(name, names):
                yield _opened(name, path, str(path))


def _in_initrd(request: "Request", names: Sequence["ProbeName"]) -> Iterator[ModuleFile]:
    """Those in the initial file system. What cannot be read is none: the guest may never load it."""
    for path, content in _files(request.configuration.initrd):
        name = _name_of(path)
        if name is None or not _is_meant(name, names):
            continue
        # Files are mapped, so that one without a name serves as well as the module's own.
        with tempfile.NamedTemporaryFile(prefix="kinst-", suffix=".ko") as file:
            file.write(content)
            file.flush()
            try:
                yield _opened(name, Path(file.name), f"{path} in the --initrd")
            except KinstError:
                continue


def _files(initrd: bytes | memoryview | None) -> Iterable[tuple[str, memoryview]]:
    try:
        return () if initrd is None else file_system(initrd).files.items()
    except ImageError:
        return ()


def _name_of(path: str) -> str | None:
    """What a kernel calls a module by its file's name; None: it is no module."""
    file = path.rpartition("/")[2]
    return _ENDING.sub("", file).replace("-", "_") if _ENDING.search(file) else None


def kernel_name(image: Image) -> str | None:
    """What a kernel calls a module, as .modinfo says; None: old modules do not say it."""
    section = image.section(".modinfo")
    if section is None:
        return None
    texts = image.data[section.offset : section.offset + section.size].tobytes().split(b"\0")
    found = next((text for text in texts if text.startswith(_NAME)), None)
    return None if found is None else found.removeprefix(_NAME).decode(errors="replace")
