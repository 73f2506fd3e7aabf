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
    from kinst.runtime.api import ImageFile, open_image
    from kinst.runtime.attached.attach import Attached, attach
    from kinst.runtime.machine.calling.arguments import Buffer
    from kinst.runtime.machine.calling.called import Called
    from kinst.runtime.machine.configuration import End
    from kinst.runtime.machine.disk import Disk
    from kinst.runtime.providers.probe_table import Probe
    from kinst.runtime.trace import Trace
    from kinst.runtime.tracing.calls.call_records import CallRecord
    from kinst.runtime.tracing.calls.sweep import Sweep
    from kinst.runtime.tracing.given import Machine, Options
    from kinst.runtime.tracing.hits import Hit, Place
    from kinst.runtime.tracing.host.ending import Ending
    from kinst.runtime.tracing.host.guest_view import GuestView
    from kinst.runtime.tracing.results.recorded import Aggregated, FlamePicture, Probes, Record, Records
    from kinst.runtime.tracing.typed_values import Arguments
    from kinst.runtime.typed.errors import MemoryFaultError, NoMemberError, NoNameError, OperandError, RangeError
    from kinst.runtime.typed.image_objects import Objects
    from kinst.runtime.typed.objects import Object
    from kinst.runtime.typed.types import Type
    from kinst.runtime.typed.walks import (
        cast,
        container_of,
        follow,
        hlist_for_each_entry,
        list_for_each_entry,
        offsetof,
        sizeof,
    )
    from kinst.targets.errors import KinstError

__all__ = [
    "Aggregated",
    "Arguments",
    "Attached",
    "Buffer",
    "CallRecord",
    "Called",
    "Disk",
    "End",
    "Ending",
    "FlamePicture",
    "GuestView",
    "Hit",
    "ImageFile",
    "KinstError",
    "Machine",
    "MemoryFaultError",
    "NoMemberError",
    "NoNameError",
    "Object",
    "Objects",
    "OperandError",
    "Options",
    "Place",
    "Probe",
    "Probes",
    "RangeError",
    "Record",
    "Records",
    "Sweep",
    "Trace",
    "Type",
    "attach",
    "cast",
    "container_of",
    "follow",
    "hlist_for_each_entry",
    "list_for_each_entry",
    "offsetof",
    "open_image",
    "sizeof",
]

_HOMES: Final = {
    "Aggregated": "kinst.runtime.tracing.results.recorded",
    "Arguments": "kinst.runtime.tracing.typed_values",
    "Attached": "kinst.runtime.attached.attach",
    "Buffer": "kinst.runtime.machine.calling.arguments",
    "CallRecord": "kinst.runtime.tracing.calls.call_records",
    "Called": "kinst.runtime.machine.calling.called",
    "Disk": "kinst.runtime.machine.disk",
    "End": "kinst.runtime.machine.configuration",
    "Ending": "kinst.runtime.tracing.host.ending",
    "FlamePicture": "kinst.runtime.tracing.results.recorded",
    "GuestView": "kinst.runtime.tracing.host.guest_view",
    "Hit": "kinst.runtime.tracing.hits",
    "ImageFile": "kinst.runtime.api",
    "KinstError": "kinst.targets.errors",
    "Machine": "kinst.runtime.tracing.given",
    "MemoryFaultError": "kinst.runtime.typed.errors",
    "NoMemberError": "kinst.runtime.typed.errors",
    "NoNameError": "kinst.runtime.typed.errors",
    "Object": "kinst.runtime.typed.objects",
    "Objects": "kinst.runtime.typed.image_objects",
    "OperandError": "kinst.runtime.typed.errors",
    "Options": "kinst.runtime.tracing.given",
    "Place": "kinst.runtime.tracing.hits",
    "Probe": "kinst.runtime.providers.probe_table",
    "Probes": "kinst.runtime.tracing.results.recorded",
    "RangeError": "kinst.runtime.typed.errors",
    "Record": "kinst.runtime.tracing.results.recorded",
    "Records": "kinst.runtime.tracing.results.recorded",
    "Sweep": "kinst.runtime.tracing.calls.sweep",
    "Trace": "kinst.runtime.trace",
    "Type": "kinst.runtime.typed.types",
    "attach": "kinst.runtime.attached.attach",
    "cast": "kinst.runtime.typed.walks",
    "container_of": "kinst.runtime.typed.walks",
    "follow": "kinst.runtime.typed.walks",
    "hlist_for_each_entry": "kinst.runtime.typed.walks",
    "list_for_each_entry": "kinst.runtime.typed.walks",
    "offsetof": "kinst.runtime.typed.walks",
    "open_image": "kinst.runtime.api",
    "sizeof": "kinst.runtime.typed.walks",
}


def __dir__() -> list[str]:
    """The public names: what an interactive session completes."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import an exported name at its first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
