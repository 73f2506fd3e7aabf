"""The real images that documents use and `kinst-samples --fetch` gets: each exactly one file of one Debian package."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class DebianImage:
    """A file of a package, in one version.

    Attributes:
        package, version, architecture: of the package; the version with its epoch.
        source: the source package, whose folder of the archive has it.
        suite: a suite of Debian that had this version.
        packed: bytes of the package.
        member: the whole path in the package, a regular expression; ``.gz`` is decompressed.
        size, sha256: of the file, decompressed.
        place: where the documents have it, below the folder that they work in.
    """

    package: str
    version: str
    architecture: str
    source: str
    suite: str
    packed: int
    member: str
    size: int
    sha256: str
    place: str

    @property
    def path(self) -> str:
        """Of the package, below an archive's top. Names of files have no epoch."""
        folder = self.source[:4] if self.source.startswith("lib") else self.source[0]
        version = self.version.partition(":")[2] or self.version
        return f"pool/main/{folder}/{self.source}/{self.package}_{version}_{self.architecture}.deb"


def _known() -> Iterator[tuple[str, DebianImage]]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return ((name, DebianImage(**fields)) for name, fields in table.items())


IMAGES: Final[Mapping[str, DebianImage]] = MappingProxyType(dict(_known()))
