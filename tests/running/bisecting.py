"""A set whose patches make a program fail -> the least parts of it that do so by themselves."""

from collections.abc import Callable

from tests.running.patching import Addresses

_LEAST = 1


def culprits(sites: Addresses, fails: Callable[[Addresses], bool], most: int = 3) -> list[Addresses]:
    """The parts, of a set that fails as a whole: of one site, if it fails alone; of more, if these fail only together.

    Args:
        sites: addresses, ascending.
        fails: whether a program fails with patches at some sites.
        most: how many parts are looked for.
    """
    if len(sites) == _LEAST or most == 0:
        return [sites][:most]
    half = len(sites) // 2
    found = list[Addresses]()
    for part in (sites[:half], sites[half:]):
        if len(found) < most and fails(part):
            found += culprits(part, fails, most - len(found))
    return found or [sites]
