"""The Qiling object that our own machines are: no guest of Qiling's, and its layers know the machine's memory.

What a user does with it is Qiling's: `mem` (by physical address), `arch.regs`, hooks, `save`, `restore`. Devices, the
clock and the CPUs that do not run are not in a snapshot.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from qiling import Qiling
from qiling.const import QL_ARCH, QL_OS, QL_VERBOSE
from unicorn.unicorn_const import UC_PROT_ALL, UC_PROT_READ, UC_PROT_WRITE

from kinst.targets.arch.facts import EngineFacts

# Bytes of translated code. Unicorn's own choice is 1 GiB, and a guest that changes its code all the time fills it: what
# it changed is forgotten only when there is no room left, and then with all else.
_TRANSLATED: Final = 256 << 20
Read = Callable[[int, int], int]  # offset, size
Write = Callable[[int, int, int], None]  # offset, size, value


class BareQiling(Qiling):  # type: ignore[misc]  # Qiling has no types
    """Qiling without a guest of its own, and with its engine prepared: what can be set only before memory is mapped."""

    _internal_exception: BaseException | None

    def __init__(self, facts: EngineFacts, cpu_model: int | None) -> None:
        """`on_stop` and `on_restore` must be set before somebody uses the object."""
        self._facts = facts
        self._cpu_model = cpu_model
        self.on_stop: Callable[[], None]
        self.on_restore: Callable[[], None]
        # A bare machine wants a profile with a memory of its own; it is unmapped again when all is made.
        profile = {"CODE": {"ram_size": 0x1000, "entry_point": 0x1000, "heap_size": 0x1000, "load_address": 0x1000}}
        super().__init__(
            code=bytes(4),
            archtype=QL_ARCH[facts.qiling],
            ostype=QL_OS.BLOB,
            profile=profile,
            verbose=QL_VERBOSE.DISABLED,
            console=False,  # or its logger asks stderr for its terminal, and where tests run that is no file
        )
        for begin, end, *_ in list(self.mem.map_info):
            self.mem.unmap(begin, end - begin)

    @cached_property
    def uc(self) -> Any:
        """The engine. Qiling asks for it here before anything else does."""
        engine = self.arch.uc
        if self._cpu_model is not None:
            engine.ctl_set_cpu_model(self._cpu_model)
        if self._facts.page_size is not None:
            engine.ctl_set_page_size(self._facts.page_size)
        engine.ctl_set_tcg_buffer_size(_TRANSLATED)
        return engine

    # -- what Qiling's memory layer is told ---------------------------------------------------------------------------

    def knows_memory(self, address: int, size: int) -> None:
        """RAM was mapped."""
        self.mem.add_mapinfo(address, address + size, UC_PROT_ALL, "[ram]")

    def knows_window(self, address: int, size: int, read: Read, write: Write) -> None:
        """A device answers there."""
        self.mem.add_mapinfo(address, address + size, UC_PROT_READ | UC_PROT_WRITE, "[device]", is_mmio=True)
        self.mem.mmio_cbs[address, address + size] = (
            lambda _ql, offset, width: read(offset, width),
            lambda _ql, offset, width, value: write(offset, width, value),
        )

    # -- what its user asks for ---------------------------------------------------------------------------------------

    def emu_stop(self) -> None:
        """From a hook: the machine stops, and can go on."""
        self.on_stop()

    def taken_error(self) -> BaseException | None:
        """What was raised in one of the user's hooks since the last time."""
        error, self._internal_exception = self._internal_exception, None
        return error

    def run(self, *_arguments: object, **_options: object) -> None:
        """The machine has more to do than its engine: who made it runs it."""
        raise RuntimeError("this machine is run by the guest that it belongs to, not by its Qiling object")

    def restore(self, saved_states: Any = {}, *, snapshot: str | None = None) -> None:  # noqa: B006  # as Qiling's
        """As Qiling's; nothing that was translated before is executed."""
        super().restore(saved_states, snapshot=snapshot)
        self.on_restore()
