"""A QEMU that has not begun -> the frequency of the counter that gives its guest's records their time."""

import ctypes
import mmap
import platform
import time
from functools import cache
from typing import Final

from kinst.runtime.live.monitor import Monitor, MonitorError
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.machines.machine import CounterSource

_READ_TSC: Final = "rdtsc\nshl $32, %rdx\nor %rdx, %rax\nret"
_MEASURED: Final = 0.02  # seconds; the error is some hundred ns of them
_TRIES: Final = 8
_DEVICES: Final = "/machine/unattached"
_TIMER: Final = "riscv.aclint.mtimer"  # of boards with a CLINT, too


def timebase_of(monitor: Monitor, source: CounterSource) -> int:
    """Hz of rdtsc, cntvct_el0 or rdtime; 0: an older QEMU does not say, or there is no such counter. In QEMU rdtsc is
    the host's, with TCG and with KVM."""
    try:
        match source:
            case CounterSource.TIMER_PROPERTY:
                return _of_timer(monitor)
            case CounterSource.CPU_PROPERTY:
                return _of_cpu(monitor)
            case CounterSource.HOST:
                return _of_host()
    except (MonitorError, ValueError):
        return 0


def _of_cpu(monitor: Monitor) -> int:
    """What its first CPU has, wherever the board has that; 0: it has no CPU."""
    cpus = monitor.ask("query-cpus-fast")
    return int(monitor.ask("qom-get", path=cpus[0]["qom-path"], property="cntfrq")) if cpus else 0


def _of_timer(monitor: Monitor) -> int:
    """What the board gives its first timer; 0: it has none of these. Its device tree has the same where there is one,
    but QEMU writes that to a file only, which would stay if this process were killed meanwhile."""
    for child in monitor.ask("qom-list", path=_DEVICES):
        if child["type"] == f"child<{_TIMER}>":
            return int(monitor.ask("qom-get", path=f"{_DEVICES}/{child['name']}", property="timebase-freq"))
    return 0


@cache
def _of_host() -> int:
    """Hz of the host's time stamp counter, measured against its monotonic clock; 0: it has none."""
    if platform.machine() != "x86_64":
        return 0
    from kinst.rewriter.assemble import assemble  # most runs note no time

    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(assemble(AMD64, _READ_TSC))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)

    def now() -> tuple[int, int]:
        """Monotonic time and counter, read together: of several readings the one that took the least time, in which
        nothing intervened."""
        pairs = []
        for _ in range(_TRIES):
            before, count, behind = time.monotonic_ns(), counter(), time.monotonic_ns()
            pairs.append((behind - before, (before + behind) // 2, count))
        _, at, count = min(pairs)
        return at, count

    start, first = now()
    time.sleep(_MEASURED)
    end, last = now()
    return (last - first) * 1_000_000_000 // (end - start)
