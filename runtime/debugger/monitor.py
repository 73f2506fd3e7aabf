"""gdb's `monitor` commands: a table, to which whoever knows more of the run adds."""

from collections.abc import Callable, Mapping

from kinst.targets.errors import KinstError
from kinst.targets.nearest import nearest
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class MonitorCommand:
    """A command: what it says for its arguments, and a line about itself. It may raise KinstError."""

    run: Callable[[str], str]
    about: str
    arguments: str = ""  # as its line shows them


class Monitor:
    """The commands of one run."""

    def __init__(self, commands: Mapping[str, MonitorCommand]) -> None:
        """`help` is there besides."""
        self._commands = {"help": MonitorCommand(lambda _rest: self._help(), "these commands"), **commands}

    def run(self, line: str) -> str:
        """The answer to a line: lines, each with its end."""
        name, _, rest = line.strip().partition(" ")
        command = self._commands.get(name)
        if command is None:
            return f"no command {name!r}{nearest(name, list(self._commands))}: try monitor help\n"
        try:
            text = command.run(rest.strip())
        except KinstError as error:
            text = f"{error}"
        return text if text.endswith("\n") or not text else f"{text}\n"

    def _help(self) -> str:
        rows = [(f"{name} {one.arguments}".rstrip(), one.about) for name, one in self._commands.items()]
        width = max(len(left) for left, _ in rows)
        return "".join(f"monitor {left:{width}}  {about}\n" for left, about in rows)
