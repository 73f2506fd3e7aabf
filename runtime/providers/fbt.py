"""FBT: entry and return of functions.

At entry arg0, arg1, ... are the function's integer arguments in registers. At return arg0 is the offset of the
returning instruction in the function and arg1 the value returned. A tail call is a return of the caller: arg1 is then
what the register holds before the callee runs.
"""

from kinst.runtime.providers.site_provider import SiteProvider
from kinst.runtime.sites import SiteTable
from kinst.runtime.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.manifest import ProbeKind


def fbt_provider(sites: SiteTable, arch: ArchFacts) -> SiteProvider:
    """The entry and return probes of a patched image."""
    registers, return_value = arch.arguments, arch.return_value

    def at_entry(firing: Firing, index: int) -> int:
        return firing.regs[registers[index]] if index < len(registers) else 0

    def at_return(firing: Firing, index: int) -> int:
        if index == 0:
            return firing.enabling.offset
        return firing.regs[return_value] if index == 1 else 0

    return SiteProvider("fbt", sites, {ProbeKind.FBT_ENTRY: at_entry, ProbeKind.FBT_RETURN: at_return})


def caller(firing: Firing, arch: ArchFacts) -> int:
    """The return address at a function's entry: the link register, or the top of the stack (amd64)."""
    if arch.link_register is not None:
        return firing.regs[arch.link_register]
    return firing.frame.load(firing.regs[arch.stack_pointer], 8)
