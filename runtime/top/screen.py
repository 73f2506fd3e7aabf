"""A run in another thread -> a screen of the terminal: the hottest functions, CPUs, tasks and the console; and keys.

This file, panes.py and columns.py are the only ones that use textual (and rich, for its text).
"""

import asyncio
import signal
import threading
from contextlib import suppress
from io import TextIOWrapper
from itertools import cycle
from typing import Any, ClassVar, Final, TextIO, cast

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.top import columns
from kinst.runtime.top.columns import Columns
from kinst.runtime.top.export import export
from kinst.runtime.top.guest_run import GuestRun
from kinst.runtime.top.panes import ConsolePane, Pane
from kinst.runtime.top.ranking import Order, Ranking
from kinst.runtime.top.sample import NOTHING, Sample
from kinst.runtime.top.scrollback import Scrollback
from kinst.targets.values import dataclass

_REFRESH: Final = 0.1  # seconds
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HELP: Final = """\
q, Ctrl-C      end the run and leave; END's output and a summary follow
p, space       stop the guest and its time; again: continue
s              sort by rate, count or name
/              only keys that contain a text or match a pattern (* ?)
n              the next aggregation
c              type on the guest's console: all keys go there
Ctrl-A         leave the console; Ctrl-A a sends the guest a Ctrl-A
PgUp, PgDn     scroll what has the focus; Tab goes to the next
o              the program's output in place of the console, and back
t              show or hide CPUs and tasks
e              write the table to a file (CSV)
?, h           this help

count: all hits. /s: the rate in the last half second; with --clock icount
by the guest's time and by the host's. share: part of all hits.
"""


@dataclass(frozen=True, slots=True)
class Titles:
    """The facts about a run that do not change."""

    image: str
    machine: str
    key: str  # what the rows of its tables are
    has_two_clocks: bool  # whether the guest's time is not the host's


class Help(ModalScreen[None]):
    """The help screen."""

    # With priority, so that the next key finds the screen below.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,h,question_mark,enter,space", "dismiss", "close", priority=True)
    ]

    def compose(self) -> ComposeResult:
        """See textual."""
        box = Static(HELP, id="help", markup=False)
        box.border_title = "keys"
        yield box


class _Terminal:
    """The terminal as a file that takes everything, also when it has gone.

    Textual's thread that writes ends at the first error (EIO once the terminal is closed), without a word: then its
    queue fills, and the process waits for room in it for ever, whatever signal comes.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


class _Driver(LinuxDriver):
    """Textual's, on such a file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        assert self._file is not None, "check_screen() has asked for a terminal"
        self._file = cast(TextIOWrapper, _Terminal(self._file))


class TopScreen(App[None]):
    """The live view."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    # With priority: each is executed before the next key is read, which may be for another part of the screen.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(keys, action, priority=True)
        for keys, action in (
            ("ctrl+c", "interrupt"),
            ("q,x", "leave"),
            ("p,space", "pause"),
            ("s", "sort"),
            ("slash", "filter"),
            ("enter", "keep_filter"),
            ("escape", "drop_filter"),
            ("n", "next"),
            ("c", "console"),
            ("ctrl+a", "control_a"),
            ("a", "send_control_a"),
            ("o", "output"),
            ("t", "aside"),
            ("e", "export"),
            ("question_mark,h", "help"),
        )
    ]
    CSS = """
    Screen { layout: vertical; background: $background; }
    #status { height: 1; background: $panel; padding: 0 1; }
    #hints { height: 1; background: $panel; padding: 0 1; }
    #upper { height: 3fr; }
    #table { width: 3fr; }
    #aside { width: 2fr; max-width: 48; }
    #cpus { height: auto; max-height: 50%; }
    #tasks { height: 1fr; }
    #console, #output { height: 2fr; }
    .-narrow #upper { layout: vertical; }
    .-narrow #table { width: 1fr; height: 2fr; }
    .-narrow #aside { width: 1fr; max-width: 100%; height: 1fr; }
    .-short #upper { height: 1fr; }
    .-short #console, .-short #output { height: 1fr; }
    Screen.-narrow.-short #aside { display: none; }
    Pane { border: round $primary-darken-2; border-title-color: $text; scrollbar-size-vertical: 1; overflow-x: hidden; }
    Pane:focus { border: round $accent; }
    #output, #pattern { display: none; }
    #pattern { height: 1; border: none; padding: 0 1; }
    Help { align: center middle; }
    #help { width: 84; max-width: 100%; height: auto; max-height: 100%; border: round $accent; padding: 1 2;
            background: $surface; overflow-y: auto; }
    """

    def __init__(self, run: GuestRun, titles: Titles, console: Scrollback, output: Scrollback) -> None:
        """`run` is started when the screen is there."""
        super().__init__(driver_class=_Driver)
        self._run, self._titles = run, titles
        self._printed = {"console": console, "output": output}
        self._changes = dict.fromkeys(self._printed, -1)
        self._sample: Sample | None = None
        self._rankings: list[Ranking] = []
        self._shown = 0  # the number of the table
        self._orders = cycle((Order.VALUE, Order.NAME, Order.RATE))
        self._order = Order.RATE
        self._wanted, self._is_aside_shown = "", True
        self._keys: list[str] = []
        self._tasks: list[tuple[TaskState, float]] = []

    # -- the screen ---------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """See textual."""
        yield Static(id="status", markup=False)
        with Horizontal(id="upper"):
            yield Pane(self._row, self._heading, name="table")
            with Vertical(id="aside"):
                yield Pane(self._cpu_line, name="cpus")
                yield Pane(self._task_line, lambda _width: Text(columns.TASKS_HEADING, "bold"), name="tasks")
        yield ConsolePane(self._run.door.type, name="console")
        yield ConsolePane(lambda _keys: None, name="output")
        yield Input(id="pattern", placeholder="a text, or a pattern with * and ?", compact=True)
        yield Static(id="hints", markup=False)

    def on_mount(self) -> None:
        """See textual."""
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in _ENDING:
                loop.add_signal_handler(number, self.action_interrupt)
        self.query_one("#output").border_title = "output"
        self.query_one("#cpus").border_title = "CPUs"
        self._focus("#table")
        self._run.start()
        self.set_interval(_REFRESH, self._look)

    def _look(self) -> None:
        """Show the latest sample and output."""
        for name, printed in self._printed.items():
            if printed.changes != self._changes[name]:
                self._changes[name] = printed.changes
                self.query_one(f"#{name}", ConsolePane).show(printed.lines())
        sample = self._run.sample
        if sample is not None and sample is not self._sample:
            self._add(sample)
        self._show_status()

    def _add(self, sample: Sample) -> None:
        if not self._rankings:
            self._rankings = [Ranking() for _ in sample.tables]
        for ranking, table in zip(self._rankings, sample.tables, strict=True):
            ranking.add(sample, table)
        before, self._sample = self._sample, sample
        self._tasks = _ran(before, sample)
        self._show_table()
        cpus, tasks = self.query_one("#cpus", Pane), self.query_one("#tasks", Pane)
        if self._is_aside_shown and not (sample.cpus or sample.tasks):  # under QEMU neither is known
            self.action_aside()
        cpus.set_lines(len(sample.cpus))
        tasks.display = bool(sample.tasks)
        cpus.styles.height = "auto" if sample.tasks else "1fr"
        tasks.border_title = f"tasks ({len(sample.tasks)})"
        tasks.set_lines(len(self._tasks))

    def _show_table(self) -> None:
        if self._sample is None or not self._rankings:
            return
        self._keys = self._rankings[self._shown].keys(self._order, self._wanted)
        pane, table = self.query_one("#table", Pane), self._sample.tables[self._shown]
        number = f" {self._shown + 1}/{len(self._rankings)}" if len(self._rankings) > 1 else ""
        wanted = f" with {self._wanted}" if self._wanted else ""
        pane.border_title = f"{table.title}{number}: {len(self._keys):,}{wanted}, by {self._order.value}"
        pane.set_lines(len(self._keys))

    def _columns(self) -> Columns:
        table = self._sample.tables[self._shown] if self._sample and self._rankings else NOTHING
        has_two_clocks, has_pictures = self._titles.has_two_clocks, bool(table.pictures)
        return Columns(self._titles.key, table.heading, table.is_growing, has_two_clocks, has_pictures)

    def _heading(self, width: int) -> Text:
        return self._columns().heading(width)

    def _row(self, number: int, width: int) -> Text:
        return self._columns().row(self._rankings[self._shown].row(self._keys[number]), width)

    def _cpu_line(self, number: int, width: int) -> Text:
        return columns.cpu(self._sample.cpus[number], width) if self._sample else Text()

    def _task_line(self, number: int, width: int) -> Text:
        state, share = self._tasks[number]
        return columns.task(state, share, width)

    def _show_status(self) -> None:
        sample, run, titles = self._sample, self._run, self._titles
        state, style = _state(run)
        text = Text.assemble((titles.image, "bold"), "  ", (state, style))
        if sample is not None and titles.has_two_clocks:
            text.append(f"  guest {sample.time / 1e9:,.2f} s  host {sample.wall / 1e9:,.1f} s")
        elif sample is not None:
            text.append(f"  {sample.time / 1e9:,.1f} s")
        if sample is not None and self._rankings and sample.tables[self._shown].is_growing:
            ranking = self._rankings[self._shown]
            text.append(f"  {ranking.total:,} hits  {columns.short(ranking.rate)}/s")
        text.append(f"  {titles.machine}", "dim")
        self.query_one("#status", Static).update(text)
        console = self.query_one("#console", ConsolePane)
        console.border_title = "console: keys go to the guest, Ctrl-A leaves" if console.has_focus else "console"
        self.query_one("#hints", Static).update(self._hints(is_typed=console.has_focus))

    def _hints(self, *, is_typed: bool) -> str:
        if is_typed:
            return "Ctrl-A leave the console  PgUp/PgDn scroll"
        pause = "continue" if self._run.door.is_paused else "pause"
        others = ["n next"] if len(self._rankings) > 1 else []
        others += ["o output"] if self._printed["output"].changes else []
        return "  ".join(["q end", "? help", f"p {pause}", "s sort", "/ filter", "c console", *others, "e export"])

    # -- keys ---------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """See textual: whether a key is a command now, or input for what has the focus."""
        if isinstance(self.screen, Help):
            return action == "interrupt"
        focused = self.focused.id if self.focused is not None else None
        allowed = {"console": ("control_a",), "pattern": ("interrupt", "keep_filter", "drop_filter")}
        is_key = action in (one.action for one in self.BINDINGS if isinstance(one, Binding))
        return not is_key or action in allowed.get(focused or "", (action,))

    def action_leave(self) -> None:
        """End the run and leave, without a message that it was interrupted."""
        self._run.leave()
        self.action_interrupt()

    def action_interrupt(self) -> None:
        """End the run."""
        self._run.door.end()
        self.exit()

    def action_pause(self) -> None:
        """Pause, or continue."""
        if self._run.door.is_paused:
            self._run.door.go_on()
        else:
            self._run.door.pause()

    def action_sort(self) -> None:
        """Sort in the next order."""
        self._order = next(self._orders)
        self._show_table()

    def action_next(self) -> None:
        """Show the next aggregation."""
        if self._rankings:
            self._shown = (self._shown + 1) % len(self._rankings)
            self._show_table()

    def action_filter(self) -> None:
        """Ask for a pattern."""
        pattern = self.query_one("#pattern", Input)
        pattern.display = True
        self._focus("#pattern")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the filter while it is typed."""
        self._wanted = event.value
        self._show_table()

    def action_keep_filter(self) -> None:
        """Keep the filter; an empty one is none."""
        self.query_one("#pattern").display = False
        self._focus("#table")

    def action_drop_filter(self) -> None:
        """Remove the filter."""
        self.query_one("#pattern", Input).value = ""
        self.action_keep_filter()

    def _focus(self, name: str) -> None:
        self.screen.set_focus(self.query_one(name))  # at once: focus() lets the next keys go elsewhere

    def action_console(self) -> None:
        """Move the focus to the guest's console."""
        self._switch(is_output=False)
        self._focus("#console")

    def action_control_a(self) -> None:
        """Leave the console. Pressed again, or followed by a, it is a key for the guest, as without this screen."""
        if self.query_one("#console").has_focus:
            self._focus("#table")
        else:
            self.action_send_control_a()

    def action_send_control_a(self) -> None:
        """Press Ctrl-A on the guest's console."""
        self._run.door.type(b"\x01")
        self.action_console()

    def action_output(self) -> None:
        """Switch between the program's output and the console."""
        self._switch(is_output=not self.query_one("#output").display)

    def _switch(self, *, is_output: bool) -> None:
        self.query_one("#output").display = is_output
        self.query_one("#console").display = not is_output

    def action_aside(self) -> None:
        """Show or hide CPUs and tasks."""
        self._is_aside_shown = not self._is_aside_shown
        self.query_one("#aside").display = self._is_aside_shown

    def action_export(self) -> None:
        """Write the table to a file."""
        if self._sample is None or not self._rankings:
            return
        ranking = self._rankings[self._shown]
        rows = [ranking.row(key) for key in self._keys]
        try:
            path = export(rows, self._sample.tables[self._shown].heading)
        except OSError as error:
            self.notify(f"{error.filename or 'kinst-top.csv'}: {error.strerror}", severity="error", markup=False)
        else:
            self.notify(f"{len(rows):,} rows in {path}", markup=False)

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())


def _state(run: GuestRun) -> tuple[str, str]:
    """The state of the run, and its colour."""
    if run.error is not None:
        return f"failed: {str(run.error).splitlines()[0] if str(run.error) else type(run.error).__name__}", "bold red"
    if run.ending is not None:
        return f"ended: {run.ending.reason}", "bold yellow"
    return ("paused", "bold yellow") if run.door.is_paused else ("running", "bold green")


def _ran(before: Sample | None, now: Sample) -> list[tuple[TaskState, float]]:
    """The tasks, each with its share of the guest's time since the previous sample, the busiest first."""
    passed = 0 if before is None else now.time - before.time
    known = {task.tid: task.runtime for task in before.tasks} if before is not None else {}
    shares = [
        (task, (task.runtime - known.get(task.tid, task.runtime)) / passed if passed > 0 else 0.0) for task in now.tasks
    ]
    return sorted(shares, key=lambda one: (one[1], one[0].runtime), reverse=True)
