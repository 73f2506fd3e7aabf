"""A file that the kernel has open -> its path, and the other paths that the same file has.

A path is followed from the file's name to the root of its file system, and from there to where that is mounted
(fs/d_path.c), to the first file system of all. So it does not depend on the root folder of a process.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

from kinst.runtime.providers.host import GuestMemory
from kinst.runtime.providers.structures import find_way, followed
from kinst.runtime.trap.faults import Fault
from kinst.targets.c_types import ImageTypes

_FILE, _NAME, _MOUNT, _MOUNTED = "struct file", "struct dentry", "struct mount", "struct vfsmount"
_INODE: Final = "struct inode"
_DEEPEST: Final = 256  # folders and mounts on the way to the root
_MOST_NAMES: Final = 4096  # that a file is looked up under
_LONGEST: Final = 256  # NAME_MAX, and a NUL
_ADDRESSES: Final = 1 << 64


class LinuxPaths:
    """The paths of one kernel's files."""

    def __init__(self, types: ImageTypes, memory: GuestMemory) -> None:
        """Nothing is read yet."""
        self._memory = memory
        self._way = cache(lambda start, *members: find_way(types, start, members))  # types are large

    def obstacle(self) -> str:
        """What is missing of the kernel's types; empty: nothing."""
        wanted = ((_FILE, "f_path", "dentry"), (_NAME, "d_name", "name"), (_MOUNT, "mnt_parent"), (_MOUNT, "mnt"))
        missing = next((" ".join(one) for one in wanted if self._way(*one) is None), "")
        return missing and f"its types do not have {missing}"

    def path(self, file: int) -> str:
        """The absolute path of a struct file, by its address."""
        mounted, name = self._number(file, _FILE, "f_path", "mnt"), self._number(file, _FILE, "f_path", "dentry")
        return self._path(mounted, name)

    def aliases(self, file: int) -> Iterator[str]:
        """All its paths that the kernel has at hand, which hard links add: the one by which it was opened first."""
        mounted, name = self._number(file, _FILE, "f_path", "mnt"), self._number(file, _FILE, "f_path", "dentry")
        yield self._path(mounted, name)
        inode = self._number(name, _NAME, "d_inode")
        offset = self._offset(_NAME, "d_u")
        other = self._number(inode, _INODE, "i_dentry", "first") if inode and offset is not None else 0
        for _ in range(_MOST_NAMES):
            if not other or offset is None:
                return
            if other - offset != name:
                yield self._path(mounted, other - offset)
            other = self._loaded(other)

    def name(self, file: int) -> str:
        """The last part of its path."""
        return self._text(self._number(file, _FILE, "f_path", "dentry"))

    def size(self, file: int) -> int:
        """Its bytes."""
        return self._number(file, _FILE, "f_inode", "i_size")

    def _path(self, mounted: int, name: int) -> str:
        parts: list[str] = []
        offset = self._offset(_MOUNT, "mnt") or 0
        for _ in range(_DEEPEST):
            if name and name == self._number(mounted, _MOUNTED, "mnt_root"):
                mount = mounted - offset
                parent = self._number(mount, _MOUNT, "mnt_parent")
                if parent in (0, mount):
                    break
                mounted, name = parent + offset, self._number(mount, _MOUNT, "mnt_mountpoint")
                continue
            above = self._number(name, _NAME, "d_parent")
            if above in (0, name):
                break
            parts.append(self._text(name))
            name = above
        return "/" + "/".join(reversed(parts))

    def _text(self, name: int) -> str:
        at = self._number(name, _NAME, "d_name", "name")
        try:
            return self._memory.string(at, _LONGEST).decode(errors="surrogateescape") if at else ""
        except Fault:
            return ""

    def _loaded(self, address: int) -> int:
        try:
            return self._memory.load(address % _ADDRESSES, 8)
        except Fault:
            return 0

    def _offset(self, start: str, member: str) -> int | None:
        way = self._way(start, member)
        return way[0][0] if way else None

    def _number(self, address: int, start: str, *members: str) -> int:
        way = self._way(start, *members)
        return followed(self._memory, address, way) if way and address else 0
