"""A machine's facts -> its dissector, and what finds the uses of addresses in its code."""

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Dissector
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.functions.address_uses import AddressUses, Slots, UsesOf, Wanted
from kinst.targets.instruction import Instructions


def dissector(facts: ArchFacts) -> Dissector:
    """The dissector of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Dissector = import_module(f"kinst.rewriter.arch.{facts.name}").DISSECTOR
    return found


def uses_of(facts: ArchFacts) -> UsesOf:
    """What finds the uses of addresses. Its modules are imported when it is called: few images have code that nothing
    better vouches for."""

    def found_by_machine(
        code: NDArray[np.uint8], address: int, found: Instructions, slots: Slots, wanted: Wanted
    ) -> AddressUses:
        uses: UsesOf = import_module(f"kinst.rewriter.addresses.{facts.name}").USES
        return uses(code, address, found, slots, wanted)

    return found_by_machine
