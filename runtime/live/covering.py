"""A guest under QEMU whose image counts at its instructions -> what ran of it, for --coverage."""

from collections.abc import Callable

import numpy as np

from kinst.runtime.coverage.counted_sites import counted_at_sites
from kinst.runtime.coverage.document import Coverage, CoverageRequest, Granularity
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.standalone.probes import KeptProbes


class LiveCovering:
    """The counters of one image; see `kinst.runtime.tracing.results.run_coverage.Counting`."""

    def __init__(
        self, prepared: Prepared, probes: KeptProbes, wanted: CoverageRequest, warn: Callable[[str], None]
    ) -> None:
        """`warn` is called with how much could not be counted."""
        self._prepared, self._probes, self._wanted, self._warn = prepared, probes, wanted, warn

    def coverage(self) -> Coverage:
        """What ran so far. Raises KinstError: the image cannot be read any more."""
        granularity, program = self._wanted.granularity, self._prepared.program()
        sites, counts = self._probes.counted
        order = np.argsort(sites)
        found = counted_at_sites(program, sites[order], counts[order], granularity)
        if found.unknown:
            size, code = sum(size for _, size in found.unknown), sum(one.size for one in found.functions)
            what = f"{len(found.unknown):,} functions" if granularity is Granularity.FUNCTIONS else "parts of functions"
            self._warn(
                f"--coverage: {what} have no room for a jump, and are not known to have run, nor not to have: "
                f"{size:,} of {code:,} bytes of code"
            )
        return Coverage(granularity, 1, (found,), 0, has_order=False)
