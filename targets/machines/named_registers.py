"""Names of registers, from an SVD file -> those of a board's ranges, with their rules."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Final

from kinst.targets.machines.registers import RangeFacts, Reads, RegisterFacts, Rule
from kinst.targets.machines.svd import SvdRegister

_KEYS: Final = frozenset({"reads", "address", "size"})  # of a range, which no register of it can be called


def with_names(
    ranges: Iterable[RangeFacts], unnamed: Rule | None, names: list[SvdRegister], last: int
) -> tuple[RangeFacts, ...]:
    """The ranges with the names of registers in them.

    Args:
        ranges: of the board file, whose own names stay.
        unnamed: the rule of all other addresses, from which ranges for further peripherals are made; None, or a fault:
            there are none.
        names: by address.
        last: the highest address.
    """
    found = sorted(ranges, key=lambda one: one.address)
    if unnamed is not None and unnamed.kind is not Reads.FAULT:
        found = _with_peripherals(found, unnamed, names, last)
    addresses = [one.address for one in names]
    bounds = ((bisect_left(addresses, one.address), bisect_left(addresses, one.address + one.size)) for one in found)
    return tuple(_named(one, names[first:end]) for one, (first, end) in zip(found, bounds, strict=True))


def _with_peripherals(ranges: list[RangeFacts], rule: Rule, names: list[SvdRegister], last: int) -> list[RangeFacts]:
    """The ranges, and one for each peripheral where there is none."""
    found, taken = list(ranges), {one.name for one in ranges} | {"unnamed", "svd"}
    for name, group in groupby(
        sorted(names, key=lambda one: (one.peripheral, one.address)), lambda one: one.peripheral
    ):
        registers = list(group)
        start, end = registers[0].address, max(one.address + one.size for one in registers)
        at = bisect_right([one.address for one in found], start)
        before = found[at - 1].address + found[at - 1].size if at else 0
        after = found[at].address if at < len(found) else last + 1
        if before <= start and end <= after and name not in taken:
            found.insert(at, RangeFacts(name, start, end - start, rule))
            taken.add(name)
    return found


def _named(found: RangeFacts, names: list[SvdRegister]) -> RangeFacts:
    """The range, where `names` may have registers, by address."""
    if found.rule.kind is Reads.FAULT:
        return found
    registers, taken = [], {one.name for one in found.registers} | _KEYS
    own, end = [one.offset for one in found.registers], 0
    for one in names:
        offset = one.address - found.address
        if offset >= found.size:
            break
        at = bisect_right(own, offset)
        before = found.registers[at - 1].offset + found.registers[at - 1].size if at else 0
        after = own[at] if at < len(own) else found.size
        if max(end, before) <= offset and offset + one.size <= after and one.name not in taken:
            registers.append(RegisterFacts(one.name, offset, one.size, found.rule))
            taken.add(one.name)
            end = offset + one.size
    return replace(found, registers=tuple(sorted((*found.registers, *registers), key=lambda one: one.offset)))
