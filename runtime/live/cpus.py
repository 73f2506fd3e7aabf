"""A QEMU that has not begun -> which of its CPUs has which number."""

from contextlib import suppress
from typing import Final

from kinst.runtime.live.monitor import Monitor, MonitorError

# What CPUs call their own number: amd64's for cpuid, arm64's in mpidr_el1; riscv64's mhartid is their place.
_PROPERTIES: Final = ("apic-id", "mp-affinity")


def order_of_cpus(monitor: Monitor) -> dict[int, int]:
    """Their places by their numbers, as records have them; those that are not there are the same."""
    found: dict[int, int] = {}
    for cpu in monitor.ask("query-cpus-fast"):
        for name in _PROPERTIES:
            with suppress(MonitorError):
                found[int(monitor.ask("qom-get", path=cpu["qom-path"], property=name))] = int(cpu["cpu-index"])
    return found
