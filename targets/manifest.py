"""The treaty between rewriter and runtime: what was patched, as a value; packed into the section `.kinst.manifest`.

The runtime needs nothing else to run a patched image, and never asks how a patch was decided.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

FIRST_PROBE_ID = 4  # 1, 2, 3 are dtrace:::BEGIN, END and ERROR, as in DTrace


class ProbeKind(IntEnum):
    """What a probe stands for; also gives its provider and the form of its name."""

    KINST = 0  # kinst:module:function:<offset>
    FBT_ENTRY = 1  # fbt:module:function:entry
    FBT_RETURN = 2  # fbt:module:function:return, one probe for all sites of a function


# One patched instruction, in address order: 40 bytes.
SITE = np.dtype(
    [
        ("address", "<u8"),  # link address
        ("trampoline", "<u8"),  # link address of its slot
        ("original", "V16"),  # pristine bytes of the instruction, zero-padded
        ("size", "u1"),  # of the instruction; amd64 patches only its first byte
        ("kind", "u1"),  # the machine's own Kind
        ("verdict", "u1"),  # Verdict.COPY or EMULATE
        ("flow", "u1"),  # Flow
        ("function", "<u4"),  # row of `functions`
    ]
)
# One probe; its id is FIRST_PROBE_ID + row: 12 bytes.
PROBE = np.dtype([("kind", "<u4"), ("function", "<u4"), ("offset", "<u4")])
# One (site, probe) pair, ordered by site; a site may serve several probes and a probe several sites: 8 bytes.
ENABLING = np.dtype([("site", "<u4"), ("probe", "<u4")])
# One function that has a probe; its name starts at `name` in the NUL-terminated string table.
FUNCTION = np.dtype([("address", "<u8"), ("size", "<u8"), ("name", "<u8")])


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a patched image says of itself. Addresses are link addresses."""

    tool_version: str
    original_sha256: str
    original_size: int
    arch: str
    module: str
    method: str
    options: tuple[str, ...]  # the probe specifications, as the user wrote them
    trampolines: tuple[int, int]  # address and size of the trampoline segment
    restore: tuple[tuple[int, bytes], ...]  # (file offset, original bytes) of changed header fields
    sites: NDArray[np.void]  # SITE
    probes: NDArray[np.void]  # PROBE
    enablings: NDArray[np.void]  # ENABLING
    functions: NDArray[np.void]  # FUNCTION
    names: bytes  # string table of the functions' names

    def function_name(self, row: int) -> str:
        """Name of the function in `row` of `functions`."""
        start = int(self.functions["name"][row])
        return self.names[start : self.names.index(b"\0", start)].decode()
