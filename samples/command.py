"""The command line -> kinst-samples: all of this folder but its modules, and the real images that documents use."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.option import Choice, option
from kinst.rewriter.commandline.reporting import reported, unescaped
from kinst.rewriter.shell.progress import bars
from kinst.samples.debian_images import IMAGES
from kinst.samples.documents import documents_folder
from kinst.samples.fetching import placed
from kinst.targets.errors import UsageError

_HERE: Final = Path(__file__).parent
_OURS: Final = tuple(path.name for path in (*_HERE.glob("*.py"), *_HERE.glob("*.toml")))
_EXAMPLES: Final = (
    Example(
        "kinst-samples samples",
        "a folder samples: kernels for three machines with their source, D programs, a provider of probes",
    ),
    Example(
        "samples/tour.sh",
        "what the tools do with the kernels: probes put in, a run, every changed byte explained",
    ),
    Example("kinst-samples --fetch opensbi-1.6", "opensbi/fw_jump.elf, as the documents use it, from Debian's archive"),
)
_IMAGES: Final = "Real images and documents"


@click.command(cls=Command, examples=_EXAMPLES, pages=("samples/README.md", "docs/cookbook/index.md"))
@click.argument("folder", type=shared.FILE, metavar="[DIR]", required=False)
@option(
    "--fetch",
    "images",
    group=_IMAGES,
    type=Choice(IMAGES),
    metavar="NAME",
    multiple=True,
    help="Get a real image from Debian's archive, or from its snapshot once that has newer ones, and put it where the "
    f"documents have it, below DIR or here: {', '.join(IMAGES)}. It is checked, and kept in the user's cache; a "
    "download that broke off goes on. Repeatable.",
    brief="Get firmware or a kernel as the documents use it.",
)
@option(
    "--docs",
    "is_for_docs",
    group=_IMAGES,
    is_flag=True,
    help="Print where the documents are, as they were installed: README.md, docs and samples/README.md below it.",
    brief="Print where the documents are.",
)
@shared.version_option()
def copy_samples(folder: Path | None, *, images: Sequence[str], is_for_docs: bool) -> None:
    """Copy the sample kernels, D programs and the provider to DIR, a new folder; DIR/README.md says what they are. With
    --fetch get real firmware and kernels instead."""
    with reported("kinst-samples"):
        if is_for_docs:
            click.echo(documents_folder())
        elif images:
            _fetch(images, folder or Path())
        elif folder is None:
            raise UsageError(
                "nothing to do: name a new folder for the samples, or an image: kinst-samples --fetch NAME"
            )
        else:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise UsageError(f"{folder}: is there already: name a folder that is new or empty")
            _copy(folder)
            click.echo("\n".join(_summary(folder)))


def _fetch(names: Sequence[str], folder: Path) -> None:
    progress = bars(unescaped(sys.stderr))
    for name in names:
        image = IMAGES[name]
        path = placed(name, image, folder, progress)
        click.echo(f"{path}: {image.package} {image.version} of Debian, {image.size:,} bytes")


def _copy(folder: Path) -> None:
    """All samples, in a folder that has its name only when it is whole."""
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name[:64]}.", dir=folder.parent) as scratch:
        whole = Path(scratch) / "samples"
        shutil.copytree(_HERE, whole, ignore=_not_copied)
        whole.replace(folder)


def _not_copied(folder: str, names: Sequence[str]) -> set[str]:
    """Caches of Python, and what this command itself is made of."""
    return {name for name in names if name == "__pycache__" or (Path(folder) == _HERE and name in _OURS)}


def _summary(folder: Path) -> Sequence[str]:
    kernels = sorted(folder.glob("*.elf"))
    programs = sorted(folder.glob("d/**/*.d"))
    return (
        f"{folder}: {len(kernels)} kernels with their source, {len(programs)} D programs, a provider; see README.md",
        f"try: kinst-run {kernels[0]} -s {folder / 'd' / 'hot.d'}",
    )
