"""io, DTrace's provider of disks' input and output, from a Linux kernel's tracepoints: dtrace_io(4).

A disk's driver gets requests: `start` is where it gets one, `done` where all of it is done. Requests that carry no
data, such as a flush, are none of the events. Drivers that take bios and no requests, those of RAM disks, mappings and
RAID, have no request queue's operations: of them `start` is where they get a bio, and `done` where that ends.

The arguments are the bio, the first of a request, and its disk, which `linux_io.d` translates with what no bio tells:
the bytes, of all of a request, and whether it failed. Tracepoints of older kernels have the queue before what they are
about, and bios of older kernels the disk itself.
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
    """What events are told by."""

    def __init__(self, host: ProviderHost) -> None:
        self._number = Structures(host).number
        self._issued_at = _position(host.types, _ISSUED, "request")
        self._queued_at = _position(host.types, _QUEUED, "bio")

    def issued(self, at: Numbers) -> Sequence[int] | None:
        """block_rq_issue(request)."""
        return self._request(at(self._issued_at), error=0)

    def completed(self, at: Numbers) -> Sequence[int] | None:
        """block_rq_complete(request, error, bytes), once for each part that is done; a request has what is left."""
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
        if not size or self._number(disk, "struct gendisk", "queue", "mq_ops"):
            return None
        return bio, disk, bio, size, self._number(bio, _BIO, "bi_status")

    def _disk(self, bio: int) -> int:
        return self._number(bio, _BIO, "bi_bdev", "bd_disk") or self._number(bio, _BIO, "bi_disk")


def _position(types: ImageTypes, name: str, tag: str) -> int:
    """Which argument of a tracepoint points to such a structure: the first is the tracer's own."""
    function = types.function(f"{FUNCTION}{name}")
    kinds = (function and function.parameters) or ()
    return next((number for number, kind in enumerate(kinds[1:]) if _is_pointer(kind, tag)), 0)


def _is_pointer(kind: CType, tag: str) -> bool:
    plain = strip(kind)
    target = strip(plain.target) if isinstance(plain, Pointer) else None
    return isinstance(target, Aggregate) and target.tag == tag


def io_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_io(4). Without types of requests and bios there is nothing to tell."""
    if host.types.type_named(_BIO) is None:
        return EventsProvider("io", (), host)
    blocks = _Blocks(host)
    start = tracepoint(_ISSUED, blocks.issued), tracepoint(_QUEUED, blocks.queued)
    done = tracepoint(_COMPLETED, blocks.completed), tracepoint(_ENDED, blocks.ended)
    return EventsProvider("io", (Event("start", start, _ARGUMENTS), Event("done", done, _ARGUMENTS)), host)
