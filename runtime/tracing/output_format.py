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
        """Whether its records have the time at which their probe fired."""
        return self in (Format.JSON, Format.JSONL, Format.PERFETTO) or self.is_table

    @property
    def is_table(self) -> bool:
        """Whether it is a table of records and aggregations."""
        return self in (Format.CSV, Format.PARQUET, Format.ARROW)

    @property
    def records_tasks(self) -> bool:
        """Whether its records have the task in which their probe fired."""
        return self is Format.PERFETTO

    @property
    def has_console(self) -> bool:
        """Whether the guest's console has a place in it."""
        return self in (Format.TEXT, Format.JSON, Format.JSONL)

    @property
    def is_appended(self) -> bool:
        """Whether it is appended to the file of -o as the run goes on, as by dtrace(1). A file of any other format
        appears whole, at the end of the run, or not at all."""
        return self in (Format.TEXT, Format.JSON)

    @property
    def is_binary(self) -> bool:
        """Whether a terminal cannot show it."""
        return self in (Format.PERFETTO, Format.PARQUET, Format.ARROW)
