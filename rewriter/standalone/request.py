"""The options for standalone images -> a checked value."""

from dataclasses import replace
from typing import Final

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import UsageError
from kinst.targets.standalone import CPU, MOST_FIELDS, TIME, Action, Standalone
from kinst.targets.values import dataclass

CAPACITY: Final = 4096  # records of a ring
_MOST: Final = 1 << 24
_FORM: Final = f"is neither {Action.COUNT} nor {Action.RECORD}:FIELD,..., such as record:arg0,arg1,time"


@dataclass(frozen=True, slots=True)
class Request:
    """`--action`, `--ring` and `--data-base`. `data_base` is None where the data goes after the trampolines. Of a mix,
    which no option asks for, `forms` are the fields of each form of record; `of_sites`: see `Manifest.forms`; and
    `counters` is how many of the sites that became jumps count, once that is known.
    `is_watched`: stores by others to trampolines and data are detected at run time, so they may be placed where nothing
    else proves that the guest leaves the memory alone. `has_room`: whoever starts the guest keeps memory free beside
    the image, and maps it with its code: trampolines end where the image begins, and the data is in front of them, or
    they are behind its end, and the data behind them (`LinuxFacts.room`). `waits`: a hit waits while the ring is
    full. `has_frames`: debuggers and unwinders find their way out of trampolines."""

    action: Action
    fields: tuple[str, ...]
    capacity: int  # of the ring; 0 where there is none
    data_base: int | None
    is_watched: bool = False
    has_room: bool = False
    waits: bool = False
    forms: tuple[tuple[str, ...], ...] = ()
    of_sites: bytes = b""
    counters: int | None = None
    has_frames: bool = True

    def kept_at(self, address: int, load_address: int, size: int) -> Standalone:
        """What is made of it at this place."""
        counters = self.of_sites.count(0) if self.counters is None else self.counters
        place = (address, load_address, size)
        return Standalone(self.action, *place, self.capacity, self.fields, self.waits, self.forms, counters)

    @property
    def kept_size(self) -> int:
        """Bytes of the ring, and of the counters of a mix with it."""
        return self.kept_at(0, 0, 0).kept_size


COUNT: Final = Request(Action.COUNT, (), 0, None)
IN_OUR_MACHINE: Final = replace(COUNT, is_watched=True, has_frames=False)


def parse_request(action: str, ring: int | None, data_base: int | None, facts: ArchFacts) -> Request:
    """Check the options.

    Raises:
        UsageError: there is no such action or field, or the size of the ring is not a power of two within bounds.
    """
    verb, colon, rest = action.partition(":")
    if verb == Action.COUNT and not colon:
        if ring is not None:
            raise UsageError("--ring: counters need none: it is for --action record:...")
        return Request(Action.COUNT, (), 0, data_base)
    if verb != Action.RECORD or (colon and not rest):
        raise UsageError(f"--action {action}: {_FORM}")
    fields = tuple(rest.split(",")) if rest else ()
    arguments, registers = argument_fields(facts), facts.registers[: facts.pc]
    for field in fields:
        if not (field in (TIME, CPU) or field in arguments or field in registers):
            known = f"{arguments[0]} to {arguments[-1]}, {TIME}, {CPU} and the registers {', '.join(registers)}"
            raise UsageError(f"--action {action}: no field {field!r}: there are {known}")
    if len(fields) > MOST_FIELDS:
        raise UsageError(f"--action {action}: {len(fields)} fields are too many: a record has {MOST_FIELDS} at most")
    return Request(Action.RECORD, fields, _capacity(CAPACITY if ring is None else ring), data_base)


def argument_fields(facts: ArchFacts) -> tuple[str, ...]:
    """The names of those arguments that are passed in registers."""
    return tuple(f"arg{number}" for number in range(len(facts.arguments)))


def _capacity(records: int) -> int:
    if not 0 < records <= _MOST or records.bit_count() != 1:
        raise UsageError(f"--ring {records}: not a power of two from 1 to {_MOST:,}, the records that it holds")
    return records
