"""-x version: the versions of D, and the names that came with each (FreeBSD's table)."""

import re
from typing import Final

from kinst.runtime.dlang.builtins import is_predefined
from kinst.runtime.dlang.context import OptionValues
from kinst.runtime.dlang.syntax.language import LATEST, Version

_WRITTEN: Final = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?")
_MINOR: Final[dict[int, tuple[int, ...]]] = {2: (1, 2), 4: (1,), 6: (1, 2, 3), 7: (1,), 8: (1,), 9: (1,), 12: (1,)}
VERSIONS: Final = frozenset((1, minor, micro) for minor in range(14) for micro in (0, *_MINOR.get(minor, ())))
_NAMES: Final[dict[Version, str]] = {
    (1, 1, 0): "freopen index memref rindex strchr strrchr strstr strtok substr",
    (1, 2, 0): "func mod setopt sym uaddr ucaller ufunc umod ustackdepth usym",
    (1, 3, 0): "htonl htonll htons ntohl ntohll ntohs",
    (1, 5, 0): "inet_ntoa inet_ntoa6 inet_ntop",
    (1, 6, 0): "stddev",
    (1, 6, 3): "cpu",
    (1, 7, 0): "llquantize",
    (1, 8, 0): "tolower toupper",
    (1, 9, 0): "print",
    (1, 10, 0): "getf",
    (1, 11, 0): "json strtoll",
    (1, 13, 0): "jailname jid regs",
}
_INTRODUCED: Final = {name: version for version, names in _NAMES.items() for name in names.split()}


def read(text: str) -> Version | None:
    """A version from its text, `1.6.3` or `1.5`; None for a text that is not a version."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    major, minor, micro = (int(part or 0) for part in found.groups())
    return major, minor, micro


def wanted(options: OptionValues) -> Version:
    """The version of D that programs are compiled as."""
    return read(options.text("version")) or LATEST


def is_own(name: str, options: OptionValues) -> bool:
    """Whether D itself defines this name, as a variable, an array or a function, in the version asked for."""
    return is_predefined(name) and not is_later(name, options)


def is_later(name: str, options: OptionValues) -> bool:
    """Whether D got this name in a later version than the one asked for: then programs may define it."""
    version = _INTRODUCED.get(name)
    return version is not None and version > wanted(options)
