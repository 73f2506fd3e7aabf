"""One function, called repeatedly: every call starts from the same state, and returns the probes it hit."""

from collections import Counter
from dataclasses import replace

from kinst.runtime.coverage.document import Coverage
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.template import Given, call_of
from kinst.runtime.tracing.guests.calls import Calls
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import UsageError


class Sweep:
    """A function in a machine of its own, from `ImageFile.sweep`.

    Example:
        >>> with open_image("samples/kernel-arm64.elf") as image:
        ...     sweep = image.sweep("hash_bytes")
        ...     one, five = (sweep.call(0, text, len(text)) for text in ("h", "hello"))
        >>> one.end, one.result == five.result, one.hits.keys() == five.hits.keys(), one.hits == five.hits
        (<End.RETURNED: 'returned'>, False, True, False)
    """

    def __init__(self, tracing: Tracing, function: str) -> None:
        """Made by `ImageFile.sweep`. The program of `tracing` is enabled, and counts by probe: `@[id] = count()`."""
        guest = tracing.guest
        assert guest is not None, "there is an image"
        self._tracer = tracing.tracer
        guest.surroundings.arm()
        self._function = function
        self.machine = guest.system.arch.name  # the architecture: amd64, arm64, riscv64
        self._fold = guest.surroundings.fold
        self.calls = Calls(guest)  # what makes the calls
        self.calls.address_of(function)
        self._covering = guest.covering

    def ran(self) -> Coverage:
        """What all calls so far ran of the image. Raises UsageError: that was not to be counted."""
        if self._covering is None:
            raise UsageError("what runs is not counted: give sweep() counts_code=True")
        return self._covering.coverage()

    def call(self, *arguments: Given, seconds: float = 0.1) -> Called:
        """Call the function, as `ImageFile.call` does, but without an error where it does not return.

        Args:
            arguments: numbers, of which 64 bits count; texts, which are passed by address, with a NUL; and buffers,
                which have nothing behind them.
            seconds: of the machine's time that it may take: with the clock "icount" 10 ns for an instruction.

        Raises:
            UsageError: an argument is neither, or the texts are longer than 64 KiB.
        """
        called = self.calls.call(call_of(self._function, arguments), int(seconds * 1e9))
        return replace(called, hits=self._hits())

    def _hits(self) -> dict[int, int]:
        self._fold()
        hits = Counter[int]()
        for contents in self._tracer.store.take():
            for (identifier,), count in contents.table.items():
                assert isinstance(identifier, int), "the key is a number"
                hits[identifier] += count
        return dict(hits)
