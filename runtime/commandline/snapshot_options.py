"""The options of kinst-run for snapshots, and the machine that one says."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from kinst.rewriter.commandline.option import option, together
from kinst.rewriter.shell.file_name import FileName, TextWithFile
from kinst.runtime.commandline.files import file_of_snapshot
from kinst.targets.errors import UsageError

if TYPE_CHECKING:
    from kinst.runtime.tracing.hits import PythonAction

_OF_MACHINES: Final = ("machine", "cpus", "memory", "clock", "kaslr_seed", "rng_seed", "has_virtio_console")
_OF_BOOTS: Final = ("append", "initrd", "dtb", "loads", "on", "read", "learn")  # which continue nothing

snapshot_options: Final = together(
    option(
        "--snapshot-at",
        "snapshots",
        group="Run",
        is_rare=True,
        multiple=True,
        metavar="PROBE=FILE",
        type=TextWithFile(file_of_snapshot, is_written=True),
        help="When a probe fires for the first time, write a snapshot of the guest to FILE, before the probed "
        "instruction: memory, CPUs, devices, disks, time. The run goes on. Repeatable.",
        brief="Write a snapshot when a probe first fires.",
    ),
    option(
        "--from",
        "start",
        group="Run",
        is_rare=True,
        type=FileName(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Continue from a snapshot instead of booting, with any D programs. IMAGE and --disk are those of the run "
        "that wrote it; all else of the machine is as it was.",
        brief="Continue from a snapshot.",
    ),
)


def snapshot_actions(given: dict[str, Any]) -> tuple["PythonAction", ...]:
    """What --snapshot-at does when its probes fire. Raises UsageError."""
    return tuple(map(_action, given["snapshots"]))


def _action(text: str) -> "PythonAction":
    from kinst.runtime.tracing.hits import PythonAction  # with numpy: --help and a wrong option need none
    from kinst.runtime.tracing.snapshots.at_probe import SnapshotAt

    probe, _, file = text.partition("=")
    if not probe or not file:
        raise UsageError(f"--snapshot-at {text}: PROBE=FILE, a probe description and the file to write")
    return PythonAction(probe, SnapshotAt(Path(file)))


def with_machine_of_snapshot(ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The options, with those of the machine as the snapshot of --from has them, unless they were given. Raises
    KinstError: it is no snapshot, or an option is for a boot."""
    if given["start"] is None:
        return given
    for name in _OF_BOOTS:
        if given[name] not in (None, ()):
            raise UsageError(f"--{name.removesuffix('s')}: is for a boot, and --from continues one that has happened")
    from kinst.runtime.tracing.snapshots.reading import header_of

    facts = header_of(given["start"]).facts
    found = {name: getattr(facts, name) for name in _OF_MACHINES} | {"memory": str(facts.memory)}
    return given | {name: value for name, value in found.items() if _is_left_out(ctx, name)}


def _is_left_out(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
