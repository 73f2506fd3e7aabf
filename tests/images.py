"""Image name -> path of a real kernel or firmware image, downloaded from Debian once and cached outside the repository.

What users get (`kinst-samples --fetch`) is fetched as they do it, the same version for ever. Of other packages it is
the newest, by the index of the mirror that the system's own apt uses. Run as ``python -m tests.images [NAME...]`` to
fill the cache and print the paths.
"""

import argparse
import lzma
import os
import re
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from pathlib import Path

from kinst.rewriter.shell.progress import bars
from kinst.samples import debian_images
from kinst.samples.debian_package import DEBIAN, addresses, data_tar, system_mirror
from kinst.samples.download import Download, arriving
from kinst.samples.fetching import alone, extracted, fetched, images_folder
from tests.image_list import BINARIES, DEVICE_TREES, EXACT, FILES, IMAGES, LARGE, MORE, SMALL, RealImage

__all__ = [
    "LARGE",
    "MORE",
    "SMALL",
    "at_hand",
    "data_tar",
    "device_tree",
    "downloading_alone",
    "modules_of",
    "package_index",
    "real_image",
]

CACHE = images_folder()


def real_image(name: str) -> Path:
    """Path of image `name`, downloading it on first use. The SHA-256 of what came is kept beside it."""
    path = CACHE / name / "image.elf"
    if not path.exists():
        with downloading_alone():
            if not path.exists():
                _fetch(name, path)
    return path


def downloading_alone() -> AbstractContextManager[None]:
    """One process at a time: the workers of the tests ask for the same images."""
    return alone(CACHE)


def at_hand(*names: str) -> tuple[str, ...]:
    """Those of the images that tests may ask for: others only if they were downloaded before."""
    return tuple(name for name in names if name in SMALL or (CACHE / name / "image.elf").exists())


def modules_of(kernel: str, pattern: str) -> dict[str, bytes]:
    """Modules whose whole names match, by name, from the package of the same build as the kernel's image. Of a kernel
    that has one of them built in, it is not there."""
    names = {path.stem: path for path in module_files(kernel)}
    return {name: path.read_bytes() for name, path in names.items() if re.fullmatch(pattern, name)}


def module_files(kernel: str) -> list[Path]:
    """The files of all such modules, by name."""
    folder = real_image(kernel).parent / "modules"
    with downloading_alone():
        if not folder.exists():
            _fetch_modules(kernel, folder)
    return sorted(folder.iterdir())


def members_of(name: str, image: RealImage) -> list[Path]:
    """All members of a package whose path matches, each as a file; downloaded once, and kept as `name`."""
    folder = CACHE / name
    with downloading_alone():
        if not folder.exists():
            _fetch_members(image, folder)
    return sorted(folder.iterdir())


def device_tree(name: str) -> Path:
    """The device tree of a board, by the name of its file."""
    every = [path for package, image in DEVICE_TREES.items() for path in members_of(package, image)]
    return next(path for path in every if path.stem == name)


def _fetch_members(image: RealImage, folder: Path) -> None:
    download = _download(_newest_package(image))
    _unpack(download, folder, lambda name: Path(name).name if re.fullmatch(image.member, name) else None)


def _fetch_modules(kernel: str, folder: Path) -> None:
    """Those of drivers and file systems that small systems need, decompressed."""
    wanted = re.compile(r".*/kernel/(?:drivers/(?:block|virtio|char)|fs|lib|crypto)/.*?([^/]+\.ko)(?:\.xz)?")
    _unpack(_modules_download(kernel), folder, lambda name: found[1] if (found := wanted.fullmatch(name)) else None)


def _modules_download(kernel: str) -> Download:
    """The package of the same build. In the source package of the debug information it is the one without signatures;
    riscv64 has no other."""
    if exact := EXACT.get(kernel):
        image = debian_images.IMAGES[exact]
        kind = "" if image.architecture == "riscv64" else "-unsigned"
        return Download(addresses(replace(image, package=image.package.removesuffix("-dbg") + kind).path))
    return _download((CACHE / kernel / "image.sha256").read_text().split()[1].replace("-dbg:", ":"))


def _unpack(download: Download, folder: Path, named: Callable[[str], str | None]) -> None:
    """The files of a package that `named` gives a name, decompressed, as a folder that is whole or not there."""
    partial = folder.with_suffix(f".{os.getpid()}")
    partial.mkdir(parents=True)
    kept = partial / "package.deb"
    with (
        arriving(download, kept, bars(sys.stderr)) as package,
        tarfile.open(fileobj=data_tar(package), mode="r|") as tar,
    ):
        for member in tar:
            name = named(member.name.removeprefix("./")) if member.isfile() else None
            content = tar.extractfile(member) if name is not None else None
            if name is not None and content is not None:
                data = content.read()
                (partial / name).write_bytes(lzma.decompress(data) if member.name.endswith(".xz") else data)
    kept.unlink()
    partial.rename(folder)


def _fetch(name: str, path: Path) -> None:
    if exact := EXACT.get(name):
        fetched(exact, debian_images.IMAGES[exact], bars(sys.stderr))
        if exact != name:
            path.parent.symlink_to(exact)
        return
    image = (IMAGES | FILES | BINARIES)[name]
    package = _newest_package(image)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = extracted(_download(package), image.member, path, bars(sys.stderr))
    path.with_suffix(".sha256").write_text(f"{digest}  {package}\n")


@cache
def _index(architecture: str, suite: str) -> dict[str, Download]:
    """Name -> where each package is."""
    mirror, index = package_index("amd64" if architecture == "all" else architecture, suite)
    fields = re.findall(r"^(Package|Filename|Size): (\S+)$", index, re.MULTILINE)
    return {
        name: Download((f"{mirror}/{file}",), int(size))
        for (_, name), (_, file), (_, size) in zip(fields[::3], fields[1::3], fields[2::3], strict=True)
    }


def package_index(architecture: str, suite: str) -> tuple[str, str]:
    """The mirror and its index of a suite, which is downloaded once. Not by apt: it takes no index whose Release is
    newer, as a mirror in renewal has it for days, and packages are no less there then."""
    mirror = system_mirror() or DEBIAN
    path = CACHE / "indices" / f"{suite}-{architecture}.xz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        with urllib.request.urlopen(f"{mirror}/dists/{suite}/main/binary-{architecture}/Packages.xz") as response:
            partial.write_bytes(response.read())
        partial.rename(path)
    return mirror, lzma.decompress(path.read_bytes()).decode()


def _newest_package(image: RealImage) -> str:
    """``name:architecture/suite`` of the newest package whose whole name matches."""
    names = [name for name in _index(image.architecture, image.suite) if re.fullmatch(image.package, name)]
    if not names:
        raise LookupError(f"{image.package}: no such package for {image.architecture} in {image.suite}")
    newest = max(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    return f"{newest}:{image.architecture}/{image.suite}"


def _download(package: str) -> Download:
    name, _, where = package.rpartition(":")
    architecture, _, suite = where.partition("/")
    return _index(architecture, suite)[name]


def main() -> None:
    every = IMAGES | FILES | BINARIES
    parser = argparse.ArgumentParser(prog="poe images", description="Download real images, and print where they are.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(every)}; default: all")
    names: list[str] = parser.parse_args().names
    if unknown := [name for name in names if name not in every]:
        parser.error(f"no image {', '.join(unknown)}; there are {', '.join(every)}")
    for name in names or IMAGES:
        print(real_image(name), flush=True)


if __name__ == "__main__":
    main()
