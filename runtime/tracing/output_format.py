"""What --format can be."""

from enum import Enum


class Format(Enum):
    """A format of the output, as --format spells it."""

    TEXT = "text"
    JSON = "json"
    PERFETTO = "perfetto"
    FOLDED = "folded"
    FLAMEGRAPH = "flamegraph"

    @property
    def records_time(self) -> bool:
        """Whether it tells when each probe fired."""
        return self in (Format.JSON, Format.PERFETTO)

    @property
    def records_tasks(self) -> bool:
        """Whether it tells which task each probe fired in."""
        return self is Format.PERFETTO

    @property
    def is_document(self) -> bool:
        """Whether it has no place for the guest's console, and a file of it is whole or is not there. The others are
        written as things happen, and appended to what a file has already."""
        return self not in (Format.TEXT, Format.JSON)

    @property
    def is_binary(self) -> bool:
        """Whether a terminal cannot show it."""
        return self is Format.PERFETTO
