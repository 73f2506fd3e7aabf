"""kinst: a probe at any instruction. kinst_invop passes zeros to dtrace_probe(), whatever the instruction: what a probe
has to show is regs[]. The handler itself is `kinst.runtime.trap.trap.TrapPath`."""

from typing import Final

from kinst.runtime.patched.sites import Argument, SiteTable
from kinst.runtime.providers.provider import Registration
from kinst.runtime.providers.site_provider import SiteProvider
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, PRIVATE_ISA, ProviderAttributes
from kinst.runtime.trap.trap import Firing
from kinst.targets.manifest.packed import ProbeKind

KINST: Final = Registration("kinst", ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, PRIVATE_ISA))


def kinst_provider(sites: SiteTable) -> SiteProvider:
    """The provider of a patched image's kinst probes."""

    def arguments_at(_row: int, _address: int) -> Argument:
        return _zero

    registers = {ProbeKind.KINST: lambda _index: ()}
    return SiteProvider(KINST, sites, {ProbeKind.KINST: arguments_at}, lambda _row: (), registers)


def _zero(_firing: Firing, _index: int) -> int:
    return 0
