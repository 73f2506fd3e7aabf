"""A machine's facts -> what its MMU is told."""

from importlib import import_module

from kinst.runtime.live.room.regime import Regime
from kinst.targets.arch.facts import ArchFacts


def regime_of(facts: ArchFacts) -> Regime:
    """The regime of a machine whose Linux has a boot header (`LinuxFacts.boot_magic`)."""
    found: Regime = import_module(f"kinst.runtime.live.room.{facts.name}").REGIME
    return found
