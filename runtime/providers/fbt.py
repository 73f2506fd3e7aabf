"""FBT, entry and return of functions: what fbt_invop passes to dtrace_probe(). The handler itself is
`kinst.runtime.trap.trap.TrapPath`.

At entry, arg0, arg1, ... are the function's integer arguments. At return, arg0 is the offset of the returning
instruction in the function and arg1 the returned value. A function that ends with a tail call returns when the callee
does (`kinst.runtime.unwinding.pending_returns`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.paging.walker import PageFault
from kinst.runtime.patched.sites import Argument, SiteTable
from kinst.runtime.providers import provider
from kinst.runtime.providers.provider import Registration
from kinst.runtime.providers.site_provider import SiteProvider
from kinst.runtime.providers.stability import EVOLVING_ISA, PRIVATE, PRIVATE_ISA, ProviderAttributes
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import Function, Void, strip
from kinst.targets.manifest.packed import ProbeKind

FBT: Final = Registration("fbt", ProviderAttributes(EVOLVING_ISA, PRIVATE, PRIVATE, EVOLVING_ISA, PRIVATE_ISA))
Prototype = Callable[[str, str], Function | None]  # ImageTypes.function: (name, module) -> the type of a function


def fbt_provider(sites: SiteTable, arch: ArchFacts, prototype: Prototype = lambda _name, _module: None) -> SiteProvider:
    """The provider of a patched image's entry and return probes. `prototype` gives the types of args[]."""
    return_value, manifest = arch.return_value, sites.manifest

    def at_return(firing: Firing, index: int) -> int:
        if index == 0:
            return firing.enabling.offset
        return firing.frame.regs[return_value] if index == 1 else 0

    def described(row: int) -> Sequence[provider.Argument] | None:
        kind, function, _ = manifest.probes[row].tolist()
        found = prototype(manifest.function_name(function), "")
        return _returned(found) if kind == ProbeKind.FBT_RETURN else _given(found)

    entry = argument_at_entry(arch)
    back: Argument = at_return
    values = {ProbeKind.FBT_ENTRY: lambda _row, _at: entry, ProbeKind.FBT_RETURN: lambda _row, _at: back}
    registers = {  # of the arguments at return, all but the second are constants
        ProbeKind.FBT_ENTRY: lambda index: arch.arguments[index : index + 1] or None,
        ProbeKind.FBT_RETURN: lambda index: (return_value,) if index == 1 else (),
    }
    return SiteProvider(FBT, sites, values, described, registers)


def argument_at_entry(arch: ArchFacts) -> Argument:
    """Reads the arguments of the function that begins at a site, by the machine's C ABI: first in registers, then on
    the stack."""
    registers, stack_pointer = arch.arguments, arch.stack_pointer

    def at_entry(firing: Firing, index: int) -> int:
        if index < len(registers):
            return firing.frame.regs[registers[index]]
        # Each further one has 8 bytes, above the return address if a call pushes it (System V ABI for amd64, 3.2.3; the
        # others: AAPCS64, RISC-V psABI).
        address = firing.frame.regs[stack_pointer] + arch.pushed_return + 8 * (index - len(registers)) & (1 << 64) - 1
        try:
            return firing.frame.load(address, 8)
        except PageFault:
            raise Fault(FaultKind.BADADDR, address) from None

    return at_entry


def _given(function: Function | None) -> Sequence[provider.Argument] | None:
    if function is None or function.parameters is None:
        return None
    return tuple(provider.Argument(parameter) for parameter in function.parameters)


def _returned(function: Function | None) -> Sequence[provider.Argument]:
    """args[] at return: the offset, whose type is always known, and the returned value."""
    offset = provider.Argument("int")
    if function is None or isinstance(strip(function.result), Void):
        return (offset,)
    return offset, provider.Argument(function.result)
