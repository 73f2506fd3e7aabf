"""The sites of an image in any machine -> its providers, and what descriptions of inlined copies mean."""

from typing import TYPE_CHECKING

from kinst.runtime.providers.fbt import fbt_provider
from kinst.runtime.providers.kinst import kinst_provider
from kinst.runtime.providers.profile import ProfileProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.providers.sdt import sdt_providers
from kinst.runtime.tracing.programs.inline_clauses import InlineClauses

if TYPE_CHECKING:
    from kinst.runtime.clauses.environment import Memory
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.patched.sites import SiteTable
    from kinst.runtime.providers.dtrace import DtraceProvider
    from kinst.runtime.tracing.host.contract import Host
    from kinst.runtime.tracing.images.preparing import Prepared
    from kinst.runtime.unwinding.frame_rules import FrameRules
    from kinst.runtime.unwinding.stacks import MachineStacks
    from kinst.targets.c_types import ImageTypes


def providers_of(
    dtrace: "DtraceProvider", host: "Host", sites: "SiteTable | None", loaded: "Loaded", types: "ImageTypes"
) -> Providers:
    """The providers of a run, in the order of their identifiers. `sites` is None where nothing was patched."""
    providers = Providers([dtrace])
    if sites is not None:
        register_image(providers, sites, loaded, host, types)
    providers.register(ProfileProvider(host))
    return providers


def register_image(
    providers: Providers, sites: "SiteTable", image: "Loaded", host: "Host", types: "ImageTypes"
) -> None:
    """Add the probes of an image in the machine. `image` says where it is by the time that one fires."""
    symbols = image.image.symbols

    def find(symbol: str) -> int | None:
        address = symbols.address_of(symbol)
        return None if address is None else address + image.bias

    providers.register(kinst_provider(sites))
    providers.register(fbt_provider(sites, host.arch, types.function))
    for provider in sdt_providers(sites, host.arch, find, types.function):
        providers.register(provider)
    providers.skip_to(sites.manifest.next_identifier)


def register_module(providers: Providers, sites: "SiteTable", host: "Host", types: "ImageTypes") -> None:
    """Add the probes of a module that the guest may load."""
    module = sites.manifest.module
    providers.register(kinst_provider(sites))
    providers.register(fbt_provider(sites, host.arch, lambda name, _: types.function(name, module)))
    providers.skip_to(sites.manifest.next_identifier)


def inline_clauses(
    prepared: "Prepared",
    sites: "SiteTable | None",
    stacks: "MachineStacks",
    rules: "FrameRules",
    memory: "Memory",
    bias: int,
) -> InlineClauses:
    """How clauses run in inlined copies, and where the arguments of those are found.

    Args:
        prepared: the image and what its descriptions mean.
        sites: what was patched.
        stacks: the machine's.
        rules: the image's unwind rules.
        memory: the guest's.
        bias: by how much the image was moved when it was loaded.
    """
    # Where nothing is kept of a stack they are not needed, and their DWARF takes a tenth of a run's start to import.
    from kinst.runtime.tracing.inline_arguments import InlineArguments
    from kinst.runtime.unwinding.call_instructions import CallInstructions
    from kinst.runtime.unwinding.caller_frames import CallerFrames
    from kinst.runtime.unwinding.entry_values import EntryValues
    from kinst.runtime.unwinding.locations import Machine

    arch = prepared.image.facts
    frames = CallerFrames(arch, rules, memory)
    instructions = CallInstructions(prepared.program)
    entries = EntryValues(frames, memory, instructions, lambda: prepared.opened.inlines().call_sites, bias=bias)
    machine = Machine(arch.unwind.dwarf_registers, stacks.frame_address, memory.read, bias, entries.of_firing)
    arguments = InlineArguments(machine, lambda unit: prepared.opened.inlines().call_sites.terms(unit))
    return InlineClauses(prepared.planned.expansions, prepared.planned.own_code, sites, arguments)
