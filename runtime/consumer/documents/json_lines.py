"""Records, errors, drops, the guest's console and aggregations -> JSON, an object a line, written as things happen.

The first line is {"format": "kinst-run jsonl", "schema": 1}. Then come the elements of "probes" that `json_output`
describes, then the rows of aggregations that no printa() printed, and last how the run ended:

    {"aggregation-name": "a", "function": "count", "keys": [...], "value": n}      or "buckets"; with "normal" if not 1
    {"end": {...}}
"""

from collections.abc import Mapping
from typing import Final

from kinst.runtime.consumer.documents.json_output import JsonOutput
from kinst.runtime.consumer.documents.json_values import Json

SCHEMA: Final = 1


class JsonLines(JsonOutput):
    """Writes the lines that the module describes."""

    head = f'{{"format": "kinst-run jsonl", "schema": {SCHEMA}}}\n'
    separators = ("", "")
    after = "\n"

    def _end(self, end: Mapping[str, Json] | None) -> None:
        for aggregation in self._totals.unprinted():
            shared = self._values.aggregation(aggregation, self._totals.rows(aggregation))
            rows = shared.pop("aggregation-data")
            for row in rows:
                self._put(shared | row)
        if end is not None:
            self._put({"end": end})
