"""The API for Python: open an image, trace it, read what its probes record. See `kinst.runtime.api`.

    from kinst.runtime import open_image

    with open_image("kernel.elf") as image, image.trace("fbt:::entry { @calls[probefunc] = count(); }") as trace:
        trace.run(seconds=5)
        print(trace.aggregation("calls"))

`attach` does the same to a Qiling object that its owner made and runs: see `kinst.runtime.attached.attach`.

What is exported here is imported only when it is used, since the libraries that read and run images take a second to
load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kinst.runtime.api import ImageFile, Trace, open_image
    from kinst.runtime.attached.attach import Attached, attach
    from kinst.runtime.machine.configuration import ClockKind, End
    from kinst.runtime.machine.disk import Disk, DiskMode, open_disk
    from kinst.runtime.providers.probe_table import Probe
    from kinst.runtime.tracing.ending import Ending
    from kinst.runtime.tracing.hits import Hit, Place
    from kinst.runtime.tracing.results import Aggregated, FlamePicture, Probes, Record, Records
    from kinst.targets.errors import KinstError
    from kinst.targets.method import Method

__all__ = [
    "Aggregated",
    "Attached",
    "ClockKind",
    "Disk",
    "DiskMode",
    "End",
    "Ending",
    "FlamePicture",
    "Hit",
    "ImageFile",
    "KinstError",
    "Method",
    "Place",
    "Probe",
    "Probes",
    "Record",
    "Records",
    "Trace",
    "attach",
    "open_disk",
    "open_image",
]

_HOMES: Final = {
    "Attached": "kinst.runtime.attached.attach",
    "ClockKind": "kinst.runtime.machine.configuration",
    "Disk": "kinst.runtime.machine.disk",
    "DiskMode": "kinst.runtime.machine.disk",
    "End": "kinst.runtime.machine.configuration",
    "Ending": "kinst.runtime.tracing.ending",
    "Hit": "kinst.runtime.tracing.hits",
    "ImageFile": "kinst.runtime.api",
    "KinstError": "kinst.targets.errors",
    "Method": "kinst.targets.method",
    "Place": "kinst.runtime.tracing.hits",
    "Probe": "kinst.runtime.providers.probe_table",
    "Record": "kinst.runtime.tracing.results",
    "Records": "kinst.runtime.tracing.results",
    "Aggregated": "kinst.runtime.tracing.results",
    "FlamePicture": "kinst.runtime.tracing.results",
    "Probes": "kinst.runtime.tracing.results",
    "Trace": "kinst.runtime.api",
    "attach": "kinst.runtime.attached.attach",
    "open_disk": "kinst.runtime.machine.disk",
    "open_image": "kinst.runtime.api",
}


def __dir__() -> list[str]:
    """The public names: what an interactive session completes."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import an exported name at its first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
