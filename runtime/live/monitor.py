"""QEMU's monitor (QMP): commands and answers, and the events that it reports.

The only file that uses qemu.qmp, which is written for asyncio: its loop has a thread of its own, since the thread
that asks may have a loop that runs (Jupyter's), and there can be one in each.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

from qemu.qmp import EventListener, QMPClient, QMPError
from qemu.qmp.error import ProtocolError

from kinst.targets.errors import MachineError

_EVENTS: Final = ("SHUTDOWN", "RESET", "GUEST_PANICKED", "STOP", "RESUME")
_PATIENCE: Final = 20.0  # seconds for an answer; QEMU of a large machine may take seconds to start
_LEAVING: Final = 2.0  # seconds to disconnect in
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
        # What fails is told to who asks; asyncio would print what nobody awaits, such as the end of file of `abandon`.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._client = QMPClient("kinst")
        self._thread = Thread(target=_serve, args=(self._loop, self._client), name="kinst-monitor", daemon=True)
        self._events = deque[Mapping[str, Any]]()
        self._client.register_listener(EventListener(_EVENTS, self._note))
        connection.settimeout(0)
        self._thread.start()
        try:
            self._wait_for(self._client.connect(connection))
        except MonitorError:
            self._end()
            raise

    def _note(self, event: Mapping[str, Any]) -> bool:
        """Called in the loop's thread for each event. Returns whether the listener itself keeps it."""
        self._events.append(event)
        return False

    def _end(self) -> None:
        self.abandon()
        self._thread.join()

    def abandon(self) -> None:
        """Disconnect, and do not wait: for a finalizer, which may be called in any thread."""
        with suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(self._loop.stop)

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
            self._end()

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer to a command of QMP. Raises MonitorError."""
        return self._wait_for(self._client.execute(command.replace("_", "-"), arguments))

    def human(self, text: str) -> str:
        """What a command of the human monitor prints. Raises MonitorError."""
        return str(self.ask("human-monitor-command", **{"command-line": text}))

    def events(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The events since the last time: names and their data."""
        while self._events:
            event = self._events.popleft()
            yield str(event["event"]), event.get("data", {})

    def _wait_for(self, answer: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(asyncio.wait_for(answer, _PATIENCE), self._loop).result()
        except TimeoutError:
            raise MonitorError(f"QEMU's monitor has not answered for {_PATIENCE:.0f} s") from None
        except (QMPError, ProtocolError, EOFError, OSError) as error:
            raise MonitorError(f"QEMU's monitor: {error}") from None


def _serve(loop: asyncio.AbstractEventLoop, client: QMPClient) -> None:
    """The thread of a monitor: runs its loop until that is stopped, and then what qemu.qmp has still to do."""
    loop.run_forever()
    # Whoever abandons it, or finds that QEMU has ended, may have stopped the loop before the socket was closed.
    with suppress(QMPError, ProtocolError, EOFError, OSError, TimeoutError):
        loop.run_until_complete(asyncio.wait_for(client.disconnect(), _LEAVING))
    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()
