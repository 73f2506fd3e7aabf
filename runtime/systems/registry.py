"""The operating systems that are known, in the order in which an image is searched for their evidence."""

from collections.abc import Mapping
from typing import Final

from kinst.runtime.clauses.profiles import AUTO, OperatingSystem, PanicSign
from kinst.runtime.dlang.builtins import FREEBSD
from kinst.runtime.systems.linux import LINUX
from kinst.targets.image import Image

SYSTEMS: Final[tuple[OperatingSystem, ...]] = (LINUX,)


def constants_of(image: Image, wanted: str) -> Mapping[str, int]:
    """D's constants for an image: those of the system that is `wanted` (`--os`), if it is in the image."""
    found = _system_of(image, wanted)
    return FREEBSD if found is None else found.constants


def panic_of(image: Image, wanted: str) -> tuple[PanicSign, ...]:
    """The signs that the kernel of that system has panicked; empty: none are known."""
    found = _system_of(image, wanted)
    return () if found is None else found.panic


def variables_of(image: Image, wanted: str) -> Mapping[str, str]:
    """Types of variables of that system in C, for images whose debug information does not give them."""
    found = _system_of(image, wanted)
    return {} if found is None else found.variables


def _system_of(image: Image, wanted: str) -> OperatingSystem | None:
    there = (
        one for one in SYSTEMS if wanted in (AUTO, one.name) and image.symbols.address_of(one.evidence) is not None
    )
    return next(there, None)
