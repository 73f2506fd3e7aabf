"""Calls and what became of them -> lines of a table, rows of CSV, or values for JSON."""

import io
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kinst.runtime.consumer.documents.csv_output import csv_writer, safe_cells
from kinst.runtime.machine.calling.arguments import shown
from kinst.targets.visible import visible

if TYPE_CHECKING:
    from kinst.runtime.machine.calling.called import Called
    from kinst.runtime.machine.calling.template import Call

_HEADER: Final = f"{'RESULT':>18} {'INSTRUCTIONS':>13}  CALL\n"
_COLUMNS: Final = ("call", "result", "end", "fault", "address", "symbol", "instructions", "nanoseconds")


def call_value(call: "Call", called: "Called") -> dict[str, Any]:
    """A call as an object of JSON:

    {"call": {"function": "f", "arguments": ["1", "\\"text\\""],    as one writes them
              "result": "0x37",                                  if it has returned
              "end": "returned",                                 or fault, timeout, power-off, reset, panic
              "fault": {"what": "read of 0x10, where nothing is", "address": "0x...", "symbol": "m`f+0x4"},
              "instructions": 35, "nanoseconds": 210000}}        of the host's time
    """
    value: dict[str, Any] = {"function": call.function, "arguments": [visible(shown(one)) for one in call.arguments]}
    if called.result is not None:
        value["result"] = f"{called.result:#x}"
    value["end"] = called.reason
    if called.end is None:
        fault = {"what": called.what or called.error}
        if called.pc is not None:
            fault |= {"address": f"{called.pc:#x}", "symbol": called.where}
        value["fault"] = fault
    if called.instructions is not None:
        value["instructions"] = called.instructions
    return {"call": value | {"nanoseconds": called.nanoseconds}}


class CallLines:
    """Writes a table of text, a line a call."""

    def __init__(self, output: BinaryIO) -> None:
        """Nothing is written yet."""
        self._output = output
        self._has_header = False

    def write(self, call: "Call", called: "Called") -> None:
        """Add a call, at once."""
        if not self._has_header:
            self._has_header = True
            self._output.write(_HEADER.encode())
        result = called.reason if called.result is None else f"{called.result:#x}"
        count = "" if called.instructions is None else f"{called.instructions:,}"
        why = "" if called.end is not None else f": {_fault(called)}"
        self._output.write(f"{result:>18} {count:>13}  {visible(call.text)}{why}\n".encode(errors="backslashreplace"))
        self._output.flush()


def _fault(called: "Called") -> str:
    return called.error if called.pc is None else f"at {called.where}: {called.what}"


class CallCsv:
    """Writes rows of CSV."""

    def __init__(self, output: BinaryIO, *, is_safe: bool) -> None:
        """`is_safe`: see `safe_cells`."""
        self._output, self._is_safe = output, is_safe
        self._text = io.StringIO()
        self._rows = csv_writer(self._text)
        self._rows.writerow(_COLUMNS)

    def write(self, call: "Call", called: "Called") -> None:
        """Add a call, at once."""
        result = None if called.result is None else f"{called.result:#x}"
        what = None if called.end is not None else called.what or called.error
        place = (None, None) if called.pc is None else (f"{called.pc:#x}", called.where)
        spent = called.instructions, called.nanoseconds
        cells = [visible(call.text), result, called.reason, what, *place, *spent]
        self._rows.writerow(safe_cells(cells) if self._is_safe else cells)
        self.flush()

    def flush(self) -> None:
        """Write what there is, the header at least."""
        self._output.write(self._text.getvalue().encode("utf-8", "backslashreplace"))
        self._text.seek(0)
        self._text.truncate()
        self._output.flush()
