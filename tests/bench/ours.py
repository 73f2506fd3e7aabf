"""The workload on our machine: the real trap path, from the breakpoint to the record and the displaced instruction."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from kinst.runtime import Options
from kinst.runtime.api import open_image
from kinst.runtime.hits.actions import NOTHING, Batched, Reads, counting
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.given import MethodName
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.trap.trap import Enabling, Firing
from tests.bench.baselines import STACK, STOP, Record
from tests.bench.workload import Workload


class OurRun:
    """The workload in a machine of ours, patched in memory with the probes that `descriptions` name."""

    def __init__(
        self,
        workload: Workload,
        functions: int,
        *descriptions: str,
        action: Callable[[Firing], None] | None = None,
        counted_by: Reads | None = None,
        method: MethodName | None = None,
    ) -> None:
        """`action` is what a hit does; without it, what dtrace_probe() is given is recorded. With `counted_by` the
        engine counts hits by these arguments, or if there are none all alike. `method` is that of --method."""
        self.workload = workload
        self.records: list[Record] = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "workload.elf"
            self.image(path, functions)
            with open_image(path) as image:
                trace = image.trace(
                    actions=dict.fromkeys(descriptions, lambda _hit: None), options=Options(method=method)
                )
        self.system = trace.guest.system
        self._arch = self.system.arch
        self._arguments = self._arch.arguments[:5]
        surroundings = trace.guest.surroundings
        self._fold = surroundings.fold
        if counted_by is not None:
            action = self.counting(counted_by)
        self.enable(surroundings, action or self._record)
        self.system.board.start(trace.guest.loaded)
        self.hits = 0  # that were only counted
        self._stop = workload.base + STOP
        self.system.memory.write(self._stop, max(self.system.arch.engine.armed.items())[1])
        self.system.trap.hits[self._stop] = self._returned

    def enable(self, surroundings: Surroundings, action: Callable[[Firing], None]) -> None:
        """Enable all probes."""
        surroundings.providers.enable(surroundings.providers.enabled, action)
        surroundings.arm()

    def image(self, path: Path, functions: int) -> None:
        """Write the image that is run."""
        path.write_bytes(self.workload.image(functions))

    def _record(self, firing: Firing) -> None:
        regs = firing.regs
        a, b, c, d, e = self._arguments
        self.records.append((firing.enabling.probe, regs[a], regs[b], regs[c], regs[d], regs[e]))

    def counting(self, reads: Reads = NOTHING) -> Batched:
        """An action that only counts, in `hits`, and looks at arguments."""

        def count(_enabling: Enabling, _cpu: int, hits: int, _regs: object) -> None:
            self.hits += hits

        return counting(lambda firing: count(firing.enabling, 0, 1, None), count, reads)

    def _returned(self, _pc: int) -> None:
        self.system.engine.set_pc(self._stop)
        self.system.finish(End.RETURNED)

    def run(self, count: int, rounds: int) -> None:
        """Call ``bench(table, count, rounds)``."""
        arch, registers, base = self._arch, self.system.current.registers, self.workload.base
        stack = base + STACK + 0x8000
        if arch.link_register is None:
            stack -= 8
            self.system.memory.store(stack, 8, self._stop)
        else:
            registers.set(arch.registers[arch.link_register], self._stop)
        registers.set(arch.registers[arch.stack_pointer], stack)
        for index, value in zip(arch.arguments, (self.workload.table, count, rounds), strict=False):
            registers.set(arch.registers[index], value)
        self.system.engine.set_pc(base)
        end = self.system.run()
        assert end is End.RETURNED, end
        self._fold()
