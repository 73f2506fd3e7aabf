"""The Qiling object behind our own machines. It has no guest of Qiling's; its layers know the machine's memory.

Its users work with Qiling's `mem` (by physical address), `arch.regs`, hooks, `save` and `restore`. A snapshot does not
include devices, the clock and the CPUs that do not run.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from qiling import Qiling
from qiling.const import QL_ARCH, QL_OS, QL_VERBOSE
from unicorn.unicorn_const import UC_PROT_ALL, UC_PROT_READ, UC_PROT_WRITE

from kinst.targets.arch.facts import EngineFacts

# Bytes of translated code. Unicorn's default is 1 GiB. A guest that keeps changing its code fills that, at up to 35
# MB/s, since stale translations are only dropped when the buffer is full, and then with all others.
_TRANSLATED: Final = 256 << 20
Read = Callable[[int, int], int]  # offset, size
Write = Callable[[int, int, int], None]  # offset, size, value


class BareQiling(Qiling):  # type: ignore[misc]  # Qiling has no types
    """Qiling without a guest of its own. Its engine has the settings that are only possible before memory is mapped."""

    _internal_exception: BaseException | None

    def __init__(
        self, facts: EngineFacts, cpu_model: int | None, stop: Callable[[], None], restored: Callable[[], None]
    ) -> None:
        """`stop` is called where a hook stops the machine, and `restored` when a snapshot was restored."""
        self._facts = facts
        self._cpu_model = cpu_model
        self._stop, self._restored = stop, restored
        # Without a [CODE] profile Qiling raises NoSectionError. It maps the memory in it, which is unmapped at the end.
        profile = {"CODE": {"ram_size": 0x1000, "entry_point": 0x1000, "heap_size": 0x1000, "load_address": 0x1000}}
        super().__init__(
            code=bytes(4),
            archtype=QL_ARCH[facts.qiling],
            ostype=QL_OS.BLOB,
            profile=profile,
            verbose=QL_VERBOSE.DISABLED,
            console=False,  # otherwise its logger looks for stderr's terminal, and in tests stderr is no file
        )
        for begin, end, *_ in list(self.mem.map_info):
            self.mem.unmap(begin, end - begin)

    @cached_property
    def uc(self) -> Any:
        """The engine. Qiling is the first to read it here."""
        # Here, and not in the constructor: Unicorn refuses these settings once memory is mapped, which Qiling's does.
        engine = self.arch.uc
        if self._cpu_model is not None:
            engine.ctl_set_cpu_model(self._cpu_model)
        if self._facts.page_size is not None:
            engine.ctl_set_page_size(self._facts.page_size)
        engine.ctl_set_tcg_buffer_size(_TRANSLATED)
        return engine

    # -- what Qiling's memory layer has to know
    # ---------------------------------------------------------------------------

    def knows_memory(self, address: int, size: int) -> None:
        """Note that RAM was mapped."""
        self.mem.add_mapinfo(address, address + size, UC_PROT_ALL, "[ram]")

    def knows_window(self, address: int, size: int, read: Read, write: Write) -> None:
        """Note that a device has this window."""
        self.mem.add_mapinfo(address, address + size, UC_PROT_READ | UC_PROT_WRITE, "[device]", is_mmio=True)
        self.mem.mmio_cbs[address, address + size] = (
            lambda _ql, offset, width: read(offset, width),
            lambda _ql, offset, width, value: write(offset, width, value),
        )

    # -- what its users call ---------------------------------------------------------------------------------------

    def emu_stop(self) -> None:
        """Stop the machine from a hook. It can continue later."""
        self._stop()

    def taken_error(self) -> BaseException | None:
        """The exception that one of the user's hooks raised since the last call; None if there is none."""
        error, self._internal_exception = self._internal_exception, None
        return error

    def run(self, *_arguments: object, **_options: object) -> None:
        """Refuse to run: the machine is more than its engine, so the guest that it belongs to runs it."""
        raise RuntimeError("this machine is run by the guest that it belongs to, not by its Qiling object")

    def restore(self, saved_states: Any = {}, *, snapshot: str | None = None) -> None:  # noqa: B006  # as Qiling's
        """Restore as Qiling does. Code that was translated before is translated again."""
        super().restore(saved_states, snapshot=snapshot)
        self._restored()
