"""Lines of text -> parts of the live view's screen that scroll: a table, a console.

Only the visible lines are made, so that a table of fifty thousand functions costs as much as one of fifty.
"""

from collections.abc import Callable, Sequence
from typing import Final

from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

_SENT: Final = {  # keys that are no characters -> what a terminal sends
    "enter": b"\r", "backspace": b"\x7f", "tab": b"\t", "shift+tab": b"\x1b[Z", "escape": b"\x1b", "up": b"\x1b[A",
    "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D", "home": b"\x1b[H", "end": b"\x1b[F",
    "insert": b"\x1b[2~", "delete": b"\x1b[3~", "space": b" ",
}  # fmt: skip
_LEAVE: Final = "ctrl+a"
_PASSED: Final = ("pageup", "pagedown")  # scroll


class Pane(ScrollView, can_focus=True):
    """Lines with a heading that stays."""

    def __init__(
        self,
        line: Callable[[int, int], Text],
        heading: Callable[[int], Text] | None = None,
        *,
        name: str,
        classes: str = "",
    ) -> None:
        """`line` makes a line from its number and the width in columns; `heading` one that does not scroll."""
        super().__init__(id=name, classes=classes)
        self._line, self._heading = line, heading
        self._count = 0
        self.follows = False  # whether the last line stays in sight, until the user scrolls up

    def set_lines(self, count: int) -> None:
        """Set the number of lines. All of them are redrawn."""
        was_at_end = self.is_vertical_scroll_end
        self._count = count
        self.virtual_size = Size(0, count + (self._heading is not None))
        if self.follows and was_at_end:
            self.scroll_end(animate=False, immediate=True, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """See textual."""
        width, number = self.scrollable_content_region.width, y + self.scroll_offset.y
        if self._heading is not None and y == 0:
            return self._strip(self._heading(width), width)
        number -= self._heading is not None
        if number >= self._count:
            return Strip.blank(width, self.rich_style)
        return self._strip(self._line(number, width), width)

    def _strip(self, text: Text, width: int) -> Strip:
        segments = [one for one in text.render(self.app.console) if one.text]
        return Strip(segments).crop_extend(0, width, None).apply_style(self.rich_style)


class ConsolePane(Pane):
    """A console: it shows the guest's output, and when it has the focus sends keys to the guest."""

    def __init__(self, type_keys: Callable[[bytes], None], *, name: str, classes: str = "") -> None:
        """`type_keys` sends keys to the guest."""
        super().__init__(self._shown, name=name, classes=classes)
        self.follows = True
        self._lines: Sequence[str] = ()
        self._type = type_keys

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines."""
        self._lines = lines
        self.set_lines(len(lines))

    def _shown(self, number: int, width: int) -> Text:
        text = Text(self._lines[number], no_wrap=True)
        if number == len(self._lines) - 1:
            text.truncate(width - 1)  # a line editor shows its end, but that is rare
            text.append(" ", Style(reverse=self.has_focus, underline=not self.has_focus))
        return text

    async def _on_key(self, event: events.Key) -> None:
        if event.key in _PASSED or event.key == _LEAVE:
            return
        sent = _SENT.get(event.key) or _control(event.key) or (event.character or "").encode()
        if sent:
            self._type(sent)
            self.scroll_end(animate=False)
        event.stop()
        event.prevent_default()


def _control(key: str) -> bytes:
    """The character that Ctrl and a letter send."""
    letter = key.removeprefix("ctrl+")
    return bytes([ord(letter) & 0x1F]) if letter != key and len(letter) == 1 and letter.isalpha() else b""
