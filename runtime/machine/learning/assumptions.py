"""A rule, and bits that should read otherwise -> the rule with which they do."""

from dataclasses import replace
from typing import assert_never

from kinst.targets.machines.registers import Reads, Rule


def flipped(rule: Rule, given: int, flips: int, before: int = 0) -> Rule:
    """The rule for reads that give other bits.

    Args:
        rule: the one so far.
        given: what it gave.
        flips: the bits of that which should be inverted.
        before: bits that were inverted before. What waits for such a bit again wants the opposite, so that it toggles:
            a handshake, a reset that is set and clears itself.
    """
    match rule.kind:
        case Reads.LAST:
            up, down = flips & ~given, flips & given
            toggle = rule.toggle | flips & (before | rule.toggle) | up & rule.clear | down & rule.bits
            bits, clear = (rule.bits | up) & ~toggle & ~down, (rule.clear | down) & ~toggle & ~up
            return replace(rule, bits=bits, clear=clear, toggle=toggle)
        case Reads.CONSTANT | Reads.LIST | Reads.COUNT | Reads.FAULT:
            if flips & before:
                return Rule(Reads.TOGGLE, given, bits=flips)
            return Rule(Reads.CONSTANT, given ^ flips)
        case Reads.TOGGLE:
            return replace(rule, value=rule.value ^ flips & ~rule.bits)
        case _:
            assert_never(rule.kind)


def counting(rule: Rule, given: int, step: int) -> Rule:
    """A rule that counts on from what was given."""
    return Rule(Reads.COUNT, (given if rule.kind is not Reads.COUNT else rule.value) & (1 << 64) - 1, step=step)


def toggling(rule: Rule, given: int, bits: int) -> Rule:
    """A rule by which bits change at each read."""
    if rule.kind is Reads.LAST:
        return replace(rule, bits=rule.bits & ~bits, clear=rule.clear & ~bits, toggle=rule.toggle | bits)
    return Rule(Reads.TOGGLE, given, bits=bits)
