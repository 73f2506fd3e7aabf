"""A request and its machine -> what a machine must be like that continues from a snapshot, and what is not."""

from pathlib import Path
from typing import TYPE_CHECKING

from kinst.rewriter.shell.kept_files import file_digest, kept_folder
from kinst.runtime.engine.library import emulator_version
from kinst.runtime.machine.disk import CopiedDisk, Disk, FileDisk
from kinst.runtime.tracing.snapshots.format import DiskFacts, Facts, SnapshotError
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.method import Method

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System
    from kinst.runtime.tracing.images.preparing import Prepared

_DIGESTS = "digests"


def facts_of(prepared: "Prepared", system: "System") -> Facts:
    """What a machine and its image are. Raises MachineError, UsageError: it cannot have snapshots."""
    check_request(prepared)
    configuration = prepared.request.configuration
    return Facts(
        image=prepared.path.name,
        digest=_digest(prepared.path),
        machine=system.facts.name,
        cpus=len(system.cpus),
        memory=system.ram_size,
        clock=configuration.clock.value,
        kaslr_seed=configuration.kaslr_seed,
        rng_seed=configuration.rng_seed,
        has_virtio_console=configuration.has_virtio_console,
        disks=tuple(map(_disk, system.disks)),
        emulator=emulator_version(),
    )


def check_request(prepared: "Prepared") -> None:
    """Refuse what a snapshot cannot be of, or start with. Raises UsageError."""
    what = "a snapshot has the guest's own code, and"
    if prepared.call is not None:
        raise UsageError("a call has a machine of its own, without snapshots")
    if prepared.manifest is not None and prepared.manifest.standalone is not None:
        raise UsageError(f"{what} the probes of --method {Method.JUMP} are written into that: use another method")
    if prepared.modules:
        raise UsageError(f"{what} modules that were patched bring breakpoints of their own: give none with --module")
    if prepared.loading:
        raise UsageError(
            f"{what} where modules are is not in it: start without probes of {prepared.loading[0].file.name}"
        )
    if prepared.beside:
        raise UsageError(f"{what} images of --load and --stage bring probes of their own: start without them")
    if prepared.request.learn is not None:
        raise UsageError("a snapshot does not know what --learn has found: use the board file that it writes")


def _digest(path: Path) -> str:
    folder = kept_folder(_DIGESTS)
    try:
        found = None if folder is None else file_digest(path, folder)
        return found or file_digest(path, Path("/nonexistent")) or ""
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from None


def _disk(disk: Disk) -> DiskFacts:
    name = disk.name.decode(errors="replace")
    if not isinstance(disk, CopiedDisk | FileDisk):
        raise MachineError(f"disk {name}: is an object of your own, which has no snapshots")
    digest = _digest(Path(f"/proc/self/fd/{disk.descriptor}"))
    return DiskFacts(name, disk.size, digest, disk.is_read_only)


def check_facts(path: Path, snapshot: Facts, here: Facts) -> None:
    """Whether a machine may continue from a snapshot. Raises SnapshotError: it is made otherwise."""
    for what, then, now in (
        ("image", snapshot.digest, here.digest),
        ("machine", snapshot.machine, here.machine),
        ("number of CPUs", snapshot.cpus, here.cpus),
        ("bytes of RAM", snapshot.memory, here.memory),
        ("clock", snapshot.clock, here.clock),
        ("--kaslr-seed", snapshot.kaslr_seed, here.kaslr_seed),
        ("--rng-seed", snapshot.rng_seed, here.rng_seed),
        ("--virtio-console", snapshot.has_virtio_console, here.has_virtio_console),
        ("emulator", snapshot.emulator, here.emulator),
    ):
        if then != now and what == "image":
            raise SnapshotError(
                f"{path}: is of another image: {snapshot.image}, as it was, and {here.image} is not that"
            )
        if then != now:
            raise SnapshotError(f"{path}: is of another machine: its {what} is {_shown(then)}, and here {_shown(now)}")
    _check_disks(path, snapshot.disks, here.disks)


def _check_disks(path: Path, snapshot: tuple[DiskFacts, ...], here: tuple[DiskFacts, ...]) -> None:
    if len(snapshot) != len(here):
        names = ", ".join(one.name for one in snapshot) or "none"
        raise SnapshotError(f"{path}: is of a machine with other disks: {names}; give the same with --disk")
    for then, now in zip(snapshot, here, strict=True):
        if (then.size, then.digest, then.is_read_only) != (now.size, now.digest, now.is_read_only):
            raise SnapshotError(f"{path}: disk {now.name}: is not {then.name} as it was, or in another mode")


def _shown(value: object) -> str:
    match value:
        case None:
            return "not given"
        case bool():
            return "on" if value else "off"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
