"""io, DTrace's provider of disks' input and output, from a Linux kernel's tracepoints: dtrace_io(4).

A disk's driver gets requests: `start` is where it gets one, `done` where all of it is done. Requests without data, such
as a flush, are no events. Drivers that take bios and no requests, those of RAM disks, device mappings and RAID, have a
queue without operations (mq_ops): for them `start` is where they get a bio, and `done` where it ends.

The arguments are the bio, of a request the first one, and its disk, then two that `linux_io.d` uses and no bio has: the
bytes of the whole request, and whether it failed. Tracepoints of older kernels have the queue before the request or
bio, and bios of older kernels refer to the disk itself.
"""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.provider import Argument
from kinst.runtime.providers.structures import Structures
from kinst.targets.c_types import Aggregate, CType, ImageTypes, Pointer, strip
from kinst.targets.tracepoints import FUNCTION

_BIO: Final = "struct bio"
_REQUEST: Final = "struct request"
_ARGUMENTS: Final = (
    Argument(f"{_BIO} *", translated="bufinfo_t *"),
    Argument("struct gendisk *", translated="devinfo_t *"),
    Argument(f"{_BIO} *", translated="fileinfo_t *"),
)
_ISSUED: Final = "block_rq_issue"
_COMPLETED: Final = "block_rq_complete"
_QUEUED: Final = "block_bio_queue"
_ENDED: Final = "block_bio_complete"


class _Blocks:
    """The arguments of events, from those of tracepoints."""

    def __init__(self, host: ProviderHost) -> None:
        self._number = Structures(host).number
        self._issued_at = _position(host.types, _ISSUED, "request")
        self._queued_at = _position(host.types, _QUEUED, "bio")

    def issued(self, at: Numbers) -> Sequence[int] | None:
        """block_rq_issue(request)."""
        return self._request(at(self._issued_at), error=0)

    def completed(self, at: Numbers) -> Sequence[int] | None:
        """block_rq_complete(request, error, bytes), for each part that is done; `__data_len` still includes the
        part."""
        left = self._number(at(0), _REQUEST, "__data_len")
        return None if at(2) < left else self._request(at(0), error=at(1))

    def queued(self, at: Numbers) -> Sequence[int] | None:
        """block_bio_queue(bio)."""
        return self._bio(at(self._queued_at))

    def ended(self, at: Numbers) -> Sequence[int] | None:
        """block_bio_complete(queue, bio)."""
        return self._bio(at(1))

    def _request(self, request: int, error: int) -> Sequence[int] | None:
        bio = self._number(request, _REQUEST, "bio")
        size = self._number(request, _REQUEST, "__data_len")
        return (bio, self._disk(bio), bio, size, error) if bio and size else None

    def _bio(self, bio: int) -> Sequence[int] | None:
        size, disk = self._number(bio, _BIO, "bi_iter", "bi_size"), self._disk(bio)
        # A disk that has requests: its events are those of the requests.
        if not size or self._number(disk, "struct gendisk", "queue", "mq_ops"):
            return None
        return bio, disk, bio, size, self._number(bio, _BIO, "bi_status")

    def _disk(self, bio: int) -> int:
        # bi_disk from Linux 4.14 to 5.11; before and since then bi_bdev.
        return self._number(bio, _BIO, "bi_bdev", "bd_disk") or self._number(bio, _BIO, "bi_disk")


def _position(types: ImageTypes, name: str, tag: str) -> int:
    """The number of the tracepoint's argument that points to such a structure. Its function has one more before them,
    the tracer's own."""
    function = types.function(f"{FUNCTION}{name}")
    kinds = (function and function.parameters) or ()
    return next((number for number, kind in enumerate(kinds[1:]) if _is_pointer(kind, tag)), 0)


def _is_pointer(kind: CType, tag: str) -> bool:
    plain = strip(kind)
    target = strip(plain.target) if isinstance(plain, Pointer) else None
    return isinstance(target, Aggregate) and target.tag == tag


def io_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_io(4). Without the types of requests and bios their members cannot be read: then it has no probes."""
    if host.types.type_named(_BIO) is None:
        return EventsProvider("io", (), host)
    blocks = _Blocks(host)
    start = tracepoint(_ISSUED, blocks.issued), tracepoint(_QUEUED, blocks.queued)
    done = tracepoint(_COMPLETED, blocks.completed), tracepoint(_ENDED, blocks.ended)
    return EventsProvider("io", (Event("start", start, _ARGUMENTS), Event("done", done, _ARGUMENTS)), host)
