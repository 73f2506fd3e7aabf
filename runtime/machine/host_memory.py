"""How much RAM a guest may have: a guest that writes to all of it takes that much of the host's memory."""

import os
import re
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/proc/meminfo")
_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")  # the limit of a container


def host_memory() -> int:
    """The bytes that can be used without swapping (MemAvailable); all of the host's memory if it does not say."""
    found = re.search(r"^MemAvailable:\s+([0-9]+) kB$", _text(_MEMORY), re.MULTILINE)
    return min(int(found[1]) << 10, total_memory()) if found else total_memory()


def total_memory() -> int:
    """The bytes of the host's memory, or of a container's share."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _text(_LIMIT).strip()
    return min(total, int(limit)) if limit.isdecimal() else total


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
