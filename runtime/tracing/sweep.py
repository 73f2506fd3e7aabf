"""One function, called repeatedly: every call starts from the image as it was loaded, and returns the probes it hit."""

from collections import Counter
from dataclasses import field, replace

from kinst.runtime.machine.calling.call import Call, FunctionCall, call_of, find_function
from kinst.runtime.machine.calling.kept_machine import KeptMachine
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Called:
    """The outcome of a call. Without a result, `end` or `error` says why there is none."""

    result: int | None  # 64 unsigned bits
    end: End | None  # None: the machine cannot go on, and `error` says why
    error: str = ""  # what the machine cannot do
    hits: dict[int, int] = field(default_factory=dict)  # by identifier of a probe: how often it fired


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
        self._system, self._loaded = guest.system, guest.loaded
        self._function = function
        self._address = find_function(guest.loaded.image, function, guest.discovered)
        self.machine = guest.system.arch.name  # the architecture: amd64, arm64, riscv64
        self._fold = guest.surroundings.fold
        self._kept = KeptMachine(self._system)

    def call(self, *arguments: int | str | bytes, seconds: float = 0.1) -> Called:
        """Call the function, as `ImageFile.call` does, but without an error where it does not return.

        Args:
            arguments: numbers, of which 64 bits count, and texts, which are passed by address, with a NUL.
            seconds: of the machine's time that it may take: with the clock "icount" 10 ns for an instruction.

        Raises:
            UsageError: an argument is neither, or the texts are longer than 64 KiB.
        """
        call = call_of(self._function, arguments)
        with self._kept.call():
            called = self._called(call, int(seconds * 1e9))
        return replace(called, hits=self._hits())

    def _called(self, call: Call, timeout: int) -> Called:
        made = FunctionCall(self._system, self._loaded, call, self._address)
        try:
            end = self._system.run(timeout, hooks=MachineHooks(event=made.handle))
        except MachineError as error:
            return Called(None, None, str(error).removeprefix(f"{call.text}: "))
        return Called(made.result if end is End.RETURNED else None, end)

    def _hits(self) -> dict[int, int]:
        self._fold()
        hits = Counter[int]()
        for contents in self._tracer.store.take():
            for (identifier,), count in contents.table.items():
                assert isinstance(identifier, int), "the key is a number"
                hits[identifier] += count
        return dict(hits)
