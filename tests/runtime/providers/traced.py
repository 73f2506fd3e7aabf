"""A sample kernel on its machine, patched in memory, with the providers of its sites: no program, no consumer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kinst.rewriter.naming.static_sites import provider_names
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.runtime.clauses.guest.guest_memory import GuestMemory
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.runtime.patched.moved_trampolines import moved_trampolines
from kinst.runtime.patched.relocated import RelocatedCopies
from kinst.runtime.patched.sites import Patched, SiteHooks, SiteTable
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.fbt import fbt_provider
from kinst.runtime.providers.host import ImageHost, ProviderHost
from kinst.runtime.providers.kinst import kinst_provider
from kinst.runtime.providers.provider import Action, Provider, Providers
from kinst.runtime.providers.sdt import sdt_providers
from kinst.runtime.trap.arch.registry import emulator
from kinst.targets.c_types import NoImageTypes
from kinst.targets.machines.registry import default_machine, machine_facts
from kinst.targets.probe import ProbeName, parse_probe_names

SAMPLES = Path(__file__).parents[3] / "samples"
BEFORE_END = int(5e9)  # ns of the machine's time: the sample ends long before


def sample(arch: str) -> Path:
    """The committed kernel of a machine."""
    return SAMPLES / f"kernel-{arch}.elf"


@dataclass(slots=True)
class Traced:
    """A machine about to run, and what it printed."""

    system: System
    sites: SiteTable
    providers: Providers
    host: ImageHost
    console: bytearray = field(default_factory=bytearray)

    def enable(self, description: str, action: Action) -> int:
        """How many probes were enabled."""
        found = self.providers.described(description)
        return self.providers.enable(found, action)

    def arm(self) -> None:
        """Write what is enabled into memory."""
        self.sites.arm(self.system.memory, self.system.trap)

    def run(self) -> str:
        """To the end; what was printed."""
        self.arm()
        end = self.system.run(BEFORE_END, hooks=MachineHooks(console=self.console.extend))
        assert end is End.POWER_OFF
        return self.console.decode().replace("\r\n", "\n")


def traced(
    path: Path, descriptions: Sequence[str], made: Sequence[Callable[[ProviderHost], Provider]] = (), *, cpus: int = 1
) -> Traced:
    """Patch an image in memory for `descriptions` and for the points of the providers `made` with its host."""
    opened = open_source(Source(path))
    host = ImageHost(opened.image, NoImageTypes())
    others = [make(host) for make in made]
    known = provider_names(opened.image)
    names = [name for text in descriptions for name in parse_probe_names(text, providers=known)]
    plan = plan_probes(opened, [*names, *host.names])[1]
    facts = machine_facts(default_machine(plan.image.facts.name))
    system = System(facts, board_of(facts.name), Configuration(cpus=cpus, clock=ClockKind.ICOUNT))
    loaded = load_image(plan.image, facts, system.memory)
    sites = SiteTable(
        Patched(plan.manifest, loaded, plan.trampolines.tobytes()),
        system.arch,
        emulator(system.arch),
        SiteHooks(returning=lambda enablings, _size: enablings[0]),
    )
    static = sdt_providers(sites, system.arch, host.address_of)
    providers = Providers([DtraceProvider(), kinst_provider(sites), fbt_provider(sites, system.arch), *static, *others])
    sites.map_trampolines(system.space, system.trap, system.engine)
    trampolines = moved_trampolines(system, loaded, plan.manifest.trampolines[0])
    copies = RelocatedCopies(sites, loaded, [loaded.bias], system.trap, trampolines, system.space)
    system.trap.dtrace_invop_add(copies.claim)
    space = system.space
    memory = GuestMemory(Scratch(1 << 16), space.observe, space.observe_write, system.memory)
    host.attach(sites, memory, loaded.bias, lambda: 0)
    system.board.start(loaded)
    return Traced(system, sites, providers, host)


def names_of(providers: Providers, pattern: ProbeName) -> list[str]:
    """Probes as they are written."""
    return [str(providers.probe(number)) for number in providers.match(pattern).tolist()]
