"""A resolution and what is recorded of hits -> a standalone image, made once and kept by digest.

To plan the jumps of all functions of Linux takes four seconds; QEMU boots it in one. So the file is kept in
``$XDG_CACHE_HOME/kinst-rewrite/live``, which is private to the user, under the digest of all that it depends on.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.program import Program
from kinst.rewriter.rewriting import Opened, plan_of
from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.rewriter.shell.kept_files import forget_beyond, kept_folder
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.copies import is_behind, may_copy_itself
from kinst.rewriter.standalone.places.spare import data_gaps
from kinst.rewriter.standalone.report import no_jump_summary
from kinst.rewriter.standalone.request import Request
from kinst.rewriter.writing.write import write_image
from kinst.runtime.tracing.images.late_plan import FOLDER, LatePlan
from kinst.targets.errors import KinstError, PlacementError
from kinst.targets.image import Image, open_to_run
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.standalone import Action, stack_of
from kinst.targets.values import dataclass
from kinst.targets.visible import visible

_SUFFIX, _TEXT = ".elf", ".txt"
_FEWER: Final = 4  # times smaller is the next ring that is tried if one does not fit
_LEAST: Final = 1 << 4  # records
_ALIGNMENT: Final = 64  # bytes, of data
_SHALLOWEST: Final = 1 << 5  # words of the stack
_KEPT: Final = 8 << 30  # bytes of files; those used last. One of Linux with its debug information has 600 MB
_LONGEST: Final = 1 << 14  # characters of the summary of refused sites


@dataclass(frozen=True, slots=True)
class StandaloneImage:
    """A standalone image. `refused`: a summary of the sites that are not jumps; empty if all are."""

    image: Image
    manifest: Manifest
    refused: str


def standalone_image(
    opened: Callable[[], Opened], late: LatePlan, request: Request, progress: Progress, base: int | None = None
) -> StandaloneImage:
    """The image for some sites, from the cache or made now. `base`: the address of its trampolines, where what the
    request says of the data holds as well.

    Raises:
        KinstError: no site can be a jump, or there is no space.
    """
    request = replace(request, has_frames=False)  # no debugger gets it, and the guest is to begin soon
    folder = kept_folder(FOLDER) if late.digest else None
    if folder is None:  # nowhere to keep it
        with TemporaryDirectory(prefix="kinst-live-") as name:
            return _written(Path(name) / "image.elf", opened(), late.resolution(), request, base, progress)
    path = folder / f"{_digest(late, request, base)}{_SUFFIX}"
    found = _kept(path)
    if found is None:
        found = _written(path, opened(), late.resolution(), request, base, progress)
        forget_beyond(folder, _SUFFIX, _KEPT, _TEXT)
    return found


def _written(
    path: Path, opened: Opened, resolution: Resolution, request: Request, base: int | None, progress: Progress
) -> StandaloneImage:
    if base is None:
        plan = _planned(opened, resolution, request, progress)
    else:
        plan = plan_of(opened, resolution, alone=request, trampoline_base=base, progress=progress)
    if base is None and may_copy_itself(plan.image) and is_behind(plan.image, plan.manifest):
        raise KinstError(
            f"{plan.image.path}: has relocations, and may copy itself elsewhere without its trampolines, for which it "
            "has too little room inside: our own machine (without --on) follows it"
        )
    refused = no_jump_summary(plan.no_jumps, len(plan.manifest.sites))
    with fresh_file(path.with_suffix(_TEXT)) as file:  # before the image: `_kept` takes none without its text
        file.write(refused.encode())
    write_image(plan, path, progress=progress)
    found = _kept(path)
    assert found is not None, "it was written"
    return found


def _planned(opened: Opened, resolution: Resolution, request: Request, progress: Progress) -> Plan:
    """The plan with the largest ring that fits inside the image; if none does, with memory after its end, which is then
    watched for stores of the guest."""
    for one in _sizes(opened.program, request):
        with suppress(PlacementError):
            return plan_of(opened, resolution, alone=one, progress=progress)
    return plan_of(opened, resolution, alone=replace(request, is_watched=True), progress=progress)


def _sizes(program: Program, request: Request) -> list[Request]:
    """What to try, one after the other. The gaps of a kernel that maps only itself are known before it is planned,
    which takes seconds: there it is the deepest stack, and then the most records, that fit.

    Raises:
        PlacementError: none do.
    """
    if request.action is Action.COUNT or request.has_room or not len(program.patched_at_boot):
        return [*_smaller(request, _FEWER)]
    largest = max((end - start for start, end in data_gaps(program.image)), default=0)
    while True:
        fitting = (one for one in _smaller(request, 2) if one.kept_size + _ALIGNMENT <= largest)
        found = next(fitting, None)
        shallower = replace(request, fields=_shallower(request.fields), forms=tuple(map(_shallower, request.forms)))
        if found is not None:
            return [found]
        if shallower == request:
            raise PlacementError(
                f"{program.image.path}: such a kernel maps only itself, and has room inside for {largest:,} bytes of "
                f"data, in which {_LEAST} records do not fit: let clauses read less, or leave --on out"
            )
        request = shallower


def _smaller(request: Request, by: int) -> Iterator[Request]:
    """The request, and others whose rings are so many times smaller each."""
    yield request
    while request.action is not Action.COUNT and request.capacity > _LEAST:
        request = replace(request, capacity=max(request.capacity // by, _LEAST))
        yield request


def _shallower(fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_shallower_field, fields))


def _shallower_field(field: str) -> str:
    stack = stack_of(field)
    return field if stack is None or stack.words <= _SHALLOWEST else str(replace(stack, words=stack.words // 2))


def _kept(path: Path) -> StandaloneImage | None:
    """The image in a file; None if there is no such file, or it is damaged."""
    with suppress(OSError, KinstError):
        text = path.with_suffix(_TEXT).read_bytes()[:_LONGEST].decode(errors="replace")
        image = open_to_run(path)
        manifest = find_manifest(image)
        if manifest is not None and manifest.standalone is not None:
            path.touch()  # `forget_beyond` sorts by it
            return StandaloneImage(image, manifest, visible(text))
    return None


def _digest(late: LatePlan, request: Request, base: int | None) -> str:
    """The digest of all that the file depends on: that of the plan, what its sites record, and where."""
    return hashlib.sha256(repr((late.digest, request, base)).encode()).hexdigest()[:32]
