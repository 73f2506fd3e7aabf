"""Every kind of fuzzing there is, by name."""

from typing import Final

from tests.fuzz.archives import ARCHIVES
from tests.fuzz.boards import BOARD_TREES, BOARDS
from tests.fuzz.caches import CACHES
from tests.fuzz.calls import CALLS, CALLS_MADE
from tests.fuzz.code import CODE
from tests.fuzz.coverage import COVERAGE
from tests.fuzz.ctf import CTF
from tests.fuzz.debuggers import DEBUGGERS
from tests.fuzz.host_code import HOST_CODE
from tests.fuzz.image_files import BESIDE, HEX_LINES, IMAGE_FILES
from tests.fuzz.images import DWARF, HEADERS, MANIFESTS
from tests.fuzz.inputs import INPUT, TREES
from tests.fuzz.kernel_tables import KALLSYMS, SYSTEM_CALLS, TRACEPOINTS
from tests.fuzz.kind import Kind
from tests.fuzz.learned import LEARNED, POLLS, SVD
from tests.fuzz.modules import MODULES
from tests.fuzz.noted import NOTED
from tests.fuzz.pci import PCI
from tests.fuzz.programs import PROGRAMS
from tests.fuzz.rings import RINGS
from tests.fuzz.snapshots import SNAPSHOTS
from tests.fuzz.traffic import TRAFFIC
from tests.fuzz.types_and_names import BTF, NAMES, SYMBOLS
from tests.fuzz.virtio import VIRTIO

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        PROGRAMS,
        HEADERS,
        MANIFESTS,
        IMAGE_FILES,
        HEX_LINES,
        BESIDE,
        DWARF,
        BTF,
        CTF,
        SYMBOLS,
        NAMES,
        TRAFFIC,
        VIRTIO,
        CODE,
        KALLSYMS,
        TRACEPOINTS,
        SYSTEM_CALLS,
        MODULES,
        INPUT,
        TREES,
        BOARDS,
        BOARD_TREES,
        LEARNED,
        POLLS,
        SVD,
        PCI,
        CACHES,
        RINGS,
        DEBUGGERS,
        SNAPSHOTS,
        CALLS,
        CALLS_MADE,
        COVERAGE,
        ARCHIVES,
        NOTED,
        *HOST_CODE,
    )
}
