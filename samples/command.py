"""The command line -> kinst-samples: all of this folder but the command itself, as files to try and to read."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.reporting import reported
from kinst.targets.errors import UsageError

_HERE: Final = Path(__file__).parent
_NOT_COPIED: Final = ("__init__.py", Path(__file__).name, "__pycache__")
_EXAMPLES: Final = (
    Example(
        "kinst-samples samples",
        "a folder samples: kernels for three machines with their source, D programs, a provider of probes",
    ),
    Example(
        "samples/tour.sh",
        "what the tools do with the kernels: probes put in, a run, every changed byte explained",
    ),
)


@click.command(cls=Command, examples=_EXAMPLES, pages=("samples/README.md", "docs/cookbook/index.md"))
@click.argument("folder", type=shared.FILE, metavar="DIR")
@shared.version_option()
def copy_samples(folder: Path) -> None:
    """Copy the sample kernels, D programs and the provider to DIR, a new folder; DIR/README.md says what they are."""
    with reported("kinst-samples"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder}: is there already: name a folder that is new or empty")
        _copy(folder)
        click.echo("\n".join(_summary(folder)))


def _copy(folder: Path) -> None:
    """All samples, in a folder that has its name only when it is whole."""
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name[:64]}.", dir=folder.parent) as scratch:
        whole = Path(scratch) / "samples"
        shutil.copytree(_HERE, whole, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        whole.replace(folder)


def _summary(folder: Path) -> Sequence[str]:
    kernels = sorted(folder.glob("*.elf"))
    programs = sorted(folder.glob("d/**/*.d"))
    return (
        f"{folder}: {len(kernels)} kernels with their source, {len(programs)} D programs, a provider; see README.md",
        f"try: kinst-run {kernels[0]} -s {folder / 'd' / 'hot.d'}",
    )
