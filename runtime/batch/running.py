"""An image and a D program -> a boot, and what the program recorded."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kinst.runtime.api import open_image
from kinst.runtime.batch.rows import Answer, Outcome, Row
from kinst.runtime.batch.run_coverage import renamed
from kinst.runtime.batch.tasks import InputFile, Places, Run
from kinst.runtime.machine.configuration import End
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.given import Machine, Options
from kinst.runtime.tracing.programs.program_text import Origin, ProgramText
from kinst.targets.errors import MachineError
from kinst.targets.image import module_name

_PRINTED: Final = 4000  # characters
_CONSOLE: Final = 2000
_PART: Final = 0.8  # of a task's time that a boot may take


def boot_and_trace(image: InputFile, work: Run, places: Places, seconds: float | None = None) -> Answer:
    """Run the image until it ends, or a limit or exit() ends it. Of `seconds` of the host's time, if there is such a
    limit, it leaves enough to report what was found.

    Raises:
        KinstError: the program is wrong, or the image cannot run.
    """
    name = module_name(Path(image.name))
    with TemporaryDirectory() as folder, open_image(places[image.sha256], name=name) as opened:
        report = Path(folder) / "report.html" if work.has_report else None
        covered = Path(folder) / "coverage.json" if work.has_coverage else None
        trace = opened.trace(
            *_programs(work),
            arguments=work.arguments,
            options=Options(
                d={name: True if value is None else value for name, value in work.options},
                report=report,
                coverage=covered,
            ),
            machine=_machine(work, places),
        )
        with trace:
            if work.typed is not None:
                trace.type_lines(places[work.typed.sha256].read_bytes(), prompt=work.prompt)
            row = _row(trace, work, seconds)
        content = b"" if covered is None else renamed(covered.read_bytes(), places[image.sha256], image.name)
        return Answer((row,), report=b"" if report is None else report.read_bytes(), covered=content)


def _machine(work: Run, places: Places) -> Machine:
    return Machine(
        board=work.machine,
        on=work.on,
        cpus=work.cpus,
        memory=work.memory,
        clock="icount" if work.clock == "icount" else "host",
        append=work.append,
        initrd=None if work.initrd is None else places[work.initrd.sha256].read_bytes(),
        on_panic="end" if work.ends_on_panic else "continue",
    )


def _programs(work: Run) -> list[ProgramText]:
    origin = Origin.SCRIPT if work.is_script else Origin.NAME
    return [ProgramText(origin, work.title, work.program)] if work.program else []


def _row(trace: Trace, work: Run, seconds: float | None) -> Row:
    printed: list[str] = []
    count, wrong = 0, None
    try:
        for record in trace.records(
            seconds=work.seconds, until=work.until, wall_seconds=None if seconds is None else seconds * _PART
        ):
            count += 1
            if len(printed) < _PRINTED:
                printed.append(record.text or " ".join(map(str, record.values)))
    except MachineError as error:  # the guest stopped for good: this is what was to be found out
        wrong = str(error)
    ending = trace.finish()
    is_late = ending.end is End.WALL_TIMEOUT
    return {
        "outcome": (Outcome.TIMEOUT if is_late else Outcome.DONE).value,
        "reason": f"took longer than {_PART:.0%} of {seconds:g} s" if is_late else wrong,
        "machine": trace.machine,
        "remarks": "\n".join([*trace.refusals, *trace.messages]) or None,
        "end": ending.reason,
        "exit_status": trace.exit_status,
        "status": ending.status,
        "records": count,
        "aggregations": _aggregations(trace.aggregations),
        "printed": "\n".join(filter(None, printed))[:_PRINTED] or None,
        "console": trace.console.decode(errors="replace")[-_CONSOLE:] or None,
    }


def _aggregations(aggregations: Mapping[str, Mapping[Any, Any]]) -> str | None:
    """Aggregations as JSON, in whose objects a key must be a string: {name: [[keys, value], ...]}."""
    if not aggregations:
        return None
    value = {
        name: [[_keys(keys), _value(found)] for keys, found in rows.items()] for name, rows in aggregations.items()
    }
    return json.dumps(value, default=str, separators=(",", ":"))


def _keys(keys: Any) -> list[Any]:
    return list(keys) if isinstance(keys, tuple) else [keys]


def _value(found: Any) -> Any:
    """A number; or of a distribution the smallest values of its buckets, with their counts."""
    if not isinstance(found, dict):
        return found
    return [[low if low > -math.inf else "-inf", count] for low, count in found.items()]
