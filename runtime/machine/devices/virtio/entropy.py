"""A source of random numbers as a virtio device (virtio 1.2, 5.4). They are derived from a seed, so runs can be
compared."""

from random import Random
from typing import Final

from kinst.runtime.machine.devices.virtio.device import Immediate, Work
from kinst.runtime.machine.devices.virtio.split_queue import BrokenQueueError, Chain

_AT_MOST: Final = 4096  # bytes at once: a buffer need not be filled


class VirtioEntropy(Immediate):
    """The model of the source."""

    identity = 4
    class_code = 0x00FF
    features = 0
    configuration = b""
    queues = (8,)

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def serve(self, chain: Chain) -> Work:
        """Fill the chain's first buffer, or some of it. Raises BrokenQueueError if there is none."""
        if not chain.writable:
            raise BrokenQueueError("a request for random numbers without a buffer for them")
        buffer = chain.writable[0][:_AT_MOST]
        buffer[:] = self._random.randbytes(len(buffer))
        yield len(buffer)
        return len(buffer)
