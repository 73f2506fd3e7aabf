"""io, DTrace's provider of disks' input and output, from a Linux kernel's tracepoints: dtrace_io(4).

A disk's driver gets requests: `start` is where it gets one, `done` where all of it is done. Requests that carry no
data, such as a flush, are none of the events. Drivers that take bios and no requests, those of RAM disks, mappings and
RAID, have no request queue's operations: of them `start` is where they get a bio, and `done` where that ends.

The arguments are the bio, the first of a request, which `linux_io.d` translates with what no bio tells: the bytes, of
all of a request, and whether it failed.
"""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.provider import Argument
from kinst.runtime.providers.structures import Structures

_BIO: Final = "struct bio"
_REQUEST: Final = "struct request"
_ARGUMENTS: Final = tuple(
    Argument(f"{_BIO} *", translated=kind) for kind in ("bufinfo_t *", "devinfo_t *", "fileinfo_t *")
)


class _Blocks:
    """What events are told by."""

    def __init__(self, host: ProviderHost) -> None:
        self._number = Structures(host).number

    def issued(self, at: Numbers) -> Sequence[int] | None:
        """block_rq_issue(request)."""
        return self._request(at(0), error=0)

    def completed(self, at: Numbers) -> Sequence[int] | None:
        """block_rq_complete(request, error, bytes), once for each part that is done; a request has what is left."""
        left = self._number(at(0), _REQUEST, "__data_len")
        return None if at(2) < left else self._request(at(0), error=at(1))

    def queued(self, at: Numbers) -> Sequence[int] | None:
        """block_bio_queue(bio)."""
        return self._bio(at(0))

    def ended(self, at: Numbers) -> Sequence[int] | None:
        """block_bio_complete(queue, bio)."""
        return self._bio(at(1))

    def _request(self, request: int, error: int) -> Sequence[int] | None:
        bio = self._number(request, _REQUEST, "bio")
        size = self._number(request, _REQUEST, "__data_len")
        return (bio, bio, bio, size, error) if bio and size else None

    def _bio(self, bio: int) -> Sequence[int] | None:
        size = self._number(bio, _BIO, "bi_iter", "bi_size")
        if not size or self._number(bio, _BIO, "bi_bdev", "bd_disk", "queue", "mq_ops"):
            return None
        return bio, bio, bio, size, self._number(bio, _BIO, "bi_status")


def io_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_io(4). Without types of requests and bios there is nothing to tell."""
    if host.types.type_named(_BIO) is None:
        return EventsProvider("io", (), host)
    blocks = _Blocks(host)
    start = tracepoint("block_rq_issue", blocks.issued), tracepoint("block_bio_queue", blocks.queued)
    done = tracepoint("block_rq_complete", blocks.completed), tracepoint("block_bio_complete", blocks.ended)
    return EventsProvider("io", (Event("start", start, _ARGUMENTS), Event("done", done, _ARGUMENTS)), host)
