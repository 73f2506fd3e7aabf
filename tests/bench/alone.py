"""The workload in an image that counts by itself: jumps to code that adds to counters, in our machine."""

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.rewriting import Source, open_source
from kinst.rewriter.standalone.plan import plan_standalone
from kinst.rewriter.standalone.request import parse_request
from kinst.rewriter.writing.write import write_image
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.trap.trap import Firing
from kinst.targets.probe import parse_probe_name
from tests.bench.ours import OurRun
from tests.bench.workload import Workload

TRAMPOLINES = 0x80000  # from the link address: between the functions and their table
COUNTERS = 0x1A0000  # behind the table


class AloneRun(OurRun):
    """As `OurRun` without probes; each run adds to `hits` what was counted."""

    def __init__(self, workload: Workload, functions: int, *descriptions: str) -> None:
        """Each description is made standalone."""
        self._descriptions = descriptions
        super().__init__(workload, functions)

    def image(self, path: Path, functions: int) -> None:
        """Write the standalone image."""
        super().image(path, functions)
        opened = open_source(Source(path))
        names = [parse_probe_name(text) for text in self._descriptions]
        base = self.workload.base
        request = parse_request("count", None, base + COUNTERS, opened.image.facts)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "alone.elf"
            manifest = write_image(
                plan_standalone(resolve(opened.program, names), request, trampoline_base=base + TRAMPOLINES), out
            )
            path.write_bytes(out.read_bytes())
        assert manifest.standalone is not None
        self._cells = manifest.standalone.address, len(manifest.sites)

    def enable(self, surroundings: Surroundings, action: Callable[[Firing], None]) -> None:
        """Nothing: the image has it all."""

    def run(self, count: int, rounds: int) -> None:
        """See `OurRun.run`."""
        before = self._total()  # counters begin with numbers by which others' stores to them are known
        super().run(count, rounds)
        self.hits += self._total() - before

    def _total(self) -> int:
        address, cells = self._cells
        return sum(struct.unpack(f"<{cells}Q", self.system.memory.read(address, 8 * cells)))
