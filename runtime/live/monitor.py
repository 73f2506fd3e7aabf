"""QEMU's monitor (QMP): commands and answers, and the events that it reports.

The only file that uses qemu.qmp, which is written for asyncio: a loop of our own runs until each answer is there.
"""

import asyncio
import logging
import socket
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self

from qemu.qmp import EventListener, QMPClient, QMPError
from qemu.qmp.error import ProtocolError

from kinst.targets.errors import MachineError

_PATIENCE: Final = 20.0  # seconds for an answer; QEMU of a large machine may take seconds to start
# It would log the end of file that `close` causes.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())
logging.getLogger("qemu.qmp").propagate = False


class MonitorError(MachineError):
    """The monitor is gone, or has refused a command."""


class Monitor:
    """The monitor at the other end of a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        """Negotiate. Raises MonitorError: no QMP is spoken there."""
        self._loop = asyncio.new_event_loop()
        self._client = QMPClient("kinst")
        self._events = EventListener(("SHUTDOWN", "RESET", "GUEST_PANICKED", "STOP"))
        self._client.register_listener(self._events)
        connection.settimeout(0)
        try:
            self._wait_for(self._client.connect(connection))
        except MonitorError:
            self._loop.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect."""
        if self._loop.is_closed():
            return
        try:
            self._wait_for(self._client.disconnect())
        except MonitorError:
            pass  # QEMU has ended already
        finally:
            self._loop.close()

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer to a command of QMP. Raises MonitorError."""
        return self._wait_for(self._client.execute(command.replace("_", "-"), arguments))

    def human(self, text: str) -> str:
        """What a command of the human monitor prints. Raises MonitorError."""
        return str(self.ask("human-monitor-command", **{"command-line": text}))

    def events(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The events since the last time: names and their data."""
        try:
            self._wait_for(asyncio.sleep(0))  # lets the loop read what has arrived
        except MonitorError:
            return
        for event in self._events.clear():
            yield str(event["event"]), event.get("data", {})  # type: ignore[misc]

    def _wait_for(self, answer: Any) -> Any:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(answer, _PATIENCE))
        except TimeoutError:
            raise MonitorError(f"QEMU's monitor has not answered for {_PATIENCE:.0f} s") from None
        except (QMPError, ProtocolError, EOFError, OSError) as error:
            raise MonitorError(f"QEMU's monitor: {error}") from None
