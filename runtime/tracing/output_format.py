"""What --format can be."""

from enum import Enum


class Format(Enum):
    """A format of the output, as --format spells it."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    PERFETTO = "perfetto"
    FOLDED = "folded"
    FLAMEGRAPH = "flamegraph"
    HEATMAP = "heatmap"

    @property
    def records_time(self) -> bool:
        """Whether it tells when each probe fired."""
        return self in (Format.JSON, Format.JSONL, Format.PERFETTO) or self.is_table

    @property
    def is_table(self) -> bool:
        """Whether it is a table of records and aggregations."""
        return self in (Format.CSV, Format.PARQUET, Format.ARROW)

    @property
    def records_tasks(self) -> bool:
        """Whether it tells which task each probe fired in."""
        return self is Format.PERFETTO

    @property
    def has_console(self) -> bool:
        """Whether the guest's console has a place in it."""
        return self in (Format.TEXT, Format.JSON, Format.JSONL)

    @property
    def is_appended(self) -> bool:
        """Whether it is written to the end of what a file has already, as things happen. A file of another format is
        whole or not there."""
        return self in (Format.TEXT, Format.JSON)

    @property
    def is_binary(self) -> bool:
        """Whether a terminal cannot show it."""
        return self in (Format.PERFETTO, Format.PARQUET, Format.ARROW)
