"""Names of Debian packages -> a folder that has them and all that they depend on, as a system would, for any machine.

They come from where `tests.images` has its images from. No script of a package is run and nothing is installed: what
such a script would make (alternatives, caches) is not there.
"""

import re
import shutil
import tarfile
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.images import CACHE, data_tar, downloading_alone, package_index

SYSROOTS: Final = CACHE.parent / "sysroots"
_STANZA: Final = re.compile(r"^(Package|Depends|Pre-Depends|Provides|Filename): (.*)$", re.MULTILINE)
_MERGED: Final = ("bin", "sbin", "lib", "lib64")  # links into usr, which the script of a package would make
_FOLDERS: Final = ("proc", "dev", "tmp", "work", "etc", "emulator")
# What packages name as a dependency for the sake of their scripts, or to be configured at all.
_LEFT_OUT: Final = frozenset(("debconf", "dpkg", "init-system-helpers", "systemd", "perl", "ucf", "adduser"))


@dataclass(frozen=True, slots=True)
class _Package:
    """`depends` has alternatives: one of each tuple is needed."""

    address: str
    depends: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Packages:
    """All of a suite for one machine, by name, and who stands in for names that no package has."""

    known: Mapping[str, _Package]
    provided: Mapping[str, str]

    def closure(self, names: Iterable[str]) -> Iterator[tuple[str, _Package]]:
        """The packages, and those that they need. Raises LookupError: there is no such package."""
        left, seen = list(names), set[str]()
        while left:
            name = self._real(left.pop())
            if name in seen:
                continue
            seen.add(name)
            package = self.known[name]
            yield name, package
            left += [self._chosen(alternatives) for alternatives in package.depends if not _is_left_out(alternatives)]

    def _real(self, name: str) -> str:
        found = name if name in self.known else self.provided.get(name)
        if found is None:
            raise LookupError(f"{name}: no such package")
        return found

    def _chosen(self, alternatives: tuple[str, ...]) -> str:
        return next((name for name in alternatives if name in self.known), alternatives[0])


def _is_left_out(alternatives: tuple[str, ...]) -> bool:
    return not _LEFT_OUT.isdisjoint(alternatives)


def sysroot(machine: str, suite: str, packages: Iterable[str]) -> Path:
    """A folder with the packages, to which what is missing is added. All programs of a machine and suite share it, so
    that it has each package once.

    Raises:
        LookupError: there is no such package.
    """
    root = SYSROOTS / f"{suite}-{machine}"
    with downloading_alone():
        lay_out(root)
        for name, package in _packages(machine, suite).closure(packages):
            done = root / "var/packages" / name
            if not done.exists():
                _unpack(package.address, root)
                done.touch()
    return root


def lay_out(root: Path) -> None:
    """The folders that a root must have."""
    for name in (*_FOLDERS, "var/packages", *(f"usr/{one}" for one in _MERGED)):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in _MERGED:
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")


@cache
def _packages(machine: str, suite: str) -> _Packages:
    mirror, index = package_index(machine, suite)
    known, provided = dict[str, _Package](), dict[str, str]()
    for stanza in index.split("\n\n"):
        fields = dict(_STANZA.findall(stanza))
        if "Package" not in fields:
            continue
        depends = [fields[name] for name in ("Pre-Depends", "Depends") if name in fields]
        known[fields["Package"]] = _Package(f"{mirror}/{fields['Filename']}", _alternatives(", ".join(depends)))
        for name in _alternatives(fields.get("Provides", "")):
            provided.setdefault(name[0], fields["Package"])
    return _Packages(known, provided)


def _alternatives(text: str) -> tuple[tuple[str, ...], ...]:
    """``a (>= 1) | b, c:any`` as names."""
    clauses = (clause for clause in text.split(",") if clause.strip())
    return tuple(tuple(one.split()[0].partition(":")[0] for one in clause.split("|")) for clause in clauses)


def _unpack(address: str, root: Path) -> None:
    with urllib.request.urlopen(address) as response, tarfile.open(fileobj=data_tar(response), mode="r|") as archive:
        for member in archive:
            _put(archive, member, root)


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    """One member. Links that lead from the root stay as they are: they are followed inside of it."""
    target = root / member.name.removeprefix("./")
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        target.hardlink_to(root / member.linkname.removeprefix("./"))
    elif member.isfile():
        content = archive.extractfile(member)
        assert content is not None
        with target.open("wb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
        target.chmod(member.mode | 0o600)
