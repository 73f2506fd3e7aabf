"""A prepared image and a command -> what is kept from the guest for the image's copy, and who follows it there."""

from collections.abc import Callable
from dataclasses import replace

from kinst.rewriter.program import Program
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.request import Request
from kinst.runtime.live.command import QemuCommand
from kinst.runtime.live.copied.follower import Copy, Follower
from kinst.runtime.live.copied.layout import KeptBack, kept_back, may_move
from kinst.runtime.live.copied.telling import keep_back
from kinst.runtime.live.hits import Hits
from kinst.runtime.live.loading import loading_of
from kinst.runtime.live.qemu import Qemu
from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.debugger import Debugger
from kinst.runtime.live.room.driving import Driver
from kinst.runtime.live.room.layout import kernel_of
from kinst.runtime.live.standalone_image import StandaloneImage
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.image import Image
from kinst.targets.machines.machine import MachineFacts


def kept_from(image: Image, machine: MachineFacts, command: QemuCommand, memory: int) -> KeptBack | None:
    """What a guest of so many bytes of RAM has to be kept from; None: its image does not copy itself.

    Raises:
        UsageError: the user has QEMU's stub, or there is too much memory.
        MachineError: QEMU cannot start the board.
    """
    if not may_move(image):
        return None
    if not command.has_stub:
        raise UsageError(
            f"--on: {image.path}: has relocations, and may copy itself elsewhere: QEMU's gdb stub tells us when: leave "
            "-s and -gdb out"
        )
    ram = _board_ram(command, memory)
    return kept_back(image, ram, memory, _bias(image, machine, command, ram))


def _board_ram(command: QemuCommand, memory: int) -> int:
    """Where the board has its RAM, by a QEMU that is started only to tell it."""
    ram = SharedRam(memory)
    try:
        qemu = Qemu(command.with_image("/dev/null"), ram, wants_console=False)
        try:
            ram.place(qemu.monitor.human("info mtree -f"))
            return ram.start
        finally:
            qemu.close()
    finally:
        ram.close()


def _bias(image: Image, machine: MachineFacts, command: QemuCommand, ram: int) -> int:
    """How far from its link addresses QEMU puts it: firmware that is linked to 0 runs where the board has flash, or at
    the beginning of its RAM."""
    is_loaded = command.names_image or not loading_of(image, machine).is_flat
    has_flash = any(address == 0 for address, _ in machine.other_memory)
    is_at_zero = min(one.load_address for one in image.segments if one.size) == 0
    return ram if is_at_zero and not is_loaded and not has_flash else 0


def where(request: Request, back: KeptBack | None) -> tuple[Request, int | None]:
    """A request with the link address of the data, and that of the trampolines; None: wherever there is space."""
    if back is None:
        return request, None
    return replace(request, data_base=back.data - back.bias), back.trampolines - back.bias


def tell(back: KeptBack, ram: SharedRam, *, is_told: bool) -> None:
    """Let the guest, which has not begun, not know of what is kept from it; `is_told`: it does not in any case. Raises
    MachineError: it cannot be."""
    kept = range(back.top, back.start + back.total)
    if not ram.holds(back.top, len(kept)):
        raise MachineError(
            f"--on: this board has no memory at {back.top:#x} behind that of the guest: give it less (-m)"
        )
    if not is_told:
        keep_back(ram, kept)


def follower(
    alone: StandaloneImage,
    back: KeptBack | None,
    original: Callable[[], Program],
    progress: Progress,
    qemu: Qemu,
    ram: SharedRam,
    hits: Hits,
    *,
    is_told: bool,
) -> Driver | None:
    """Who follows the image to its copy; None: it is not in memory yet, and not one that may copy itself.

    Args:
        alone: the standalone image.
        back: what is kept from the guest; None: nothing, so that it can only be told from its copy.
        original: gives the program.
        progress: of making its trampolines again.
        qemu: with a stub; its guest has not begun.
        ram: the guest's memory.
        hits: told of the copy's trampolines.
        is_told: see `tell`.

    Raises:
        MachineError: the image may copy itself, and is not in memory yet.
    """
    if not hits.is_loaded and back is None and not is_told:
        return None
    manifest = alone.manifest
    # A PC's BIOS puts what -kernel names into memory, where its header says.
    is_later = is_told and not hits.is_loaded
    start = manifest.trampolines[0] if is_later else hits.physical(manifest.trampolines[0])
    places = range(0) if back is None else back.copies

    def code(distance: int) -> bytes:
        from kinst.rewriter.standalone.copied import code_for_copy  # with all that plans: most guests stay

        return code_for_copy(original(), manifest, distance, progress)

    copy = Copy(None if back is None else code, places, start)
    debugger, bias = Debugger(qemu.stub), start - manifest.trampolines[0]
    return Driver(debugger, Follower(alone.image, manifest, bias, copy, ram, debugger, hits.follow))


def is_followed(alone: StandaloneImage, command: QemuCommand) -> bool:
    """Whether we can see that the image leaves its trampolines or counters behind: firmware, and whatever else runs at
    the addresses at which it was linked. What is mapped elsewhere copies parts of itself for other reasons."""
    image = alone.image
    loads = [one for one in image.segments if one.kind == PT_LOAD and one.size]
    is_plain = all(one.address == one.load_address for one in loads)
    return (
        command.has_stub and is_plain and kernel_of(image, alone.manifest) is None and bool(len(alone.manifest.jumps))
    )
