"""A command and a guest's memory -> a running QEMU, which ends when we do: its console, its monitor, its end."""

import ctypes
import os
import signal
import socket
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kinst.runtime.live.console import CONSOLE_WORDS, Console
from kinst.runtime.live.monitor import Monitor, MonitorError
from kinst.runtime.live.ram import NAME, SharedRam
from kinst.runtime.machine.configuration import End
from kinst.targets.errors import MachineError
from kinst.targets.visible import visible

_PATIENCE: Final = 3.0  # seconds for QEMU to end by itself
_MOST: Final = 1 << 16  # bytes of its messages
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_LIBC: Final = ctypes.CDLL(None)  # loaded before the fork: after it only async-signal-safe calls are allowed
_BROKEN: Final = ("internal-error", "io-error")  # states in which it stops by itself, and cannot continue
_ENDS: Final = {
    "guest-shutdown": End.POWER_OFF,
    "guest-reset": End.RESET,
    "guest-panic": End.GUEST_PANIC,
    "subsystem-reset": End.RESET,
}


class Qemu:
    """One QEMU. It is paused until `resume`."""

    def __init__(
        self,
        words: Sequence[str],
        ram: SharedRam | None,
        *,
        files: Sequence[int] = (),
        wants_console: bool,
        wants_stub: bool = False,
    ) -> None:
        """Start it.

        Args:
            words: the command, complete except for what this adds.
            ram: the file for its memory; None: it has memory of its own.
            files: descriptors that its words name.
            wants_console: whether to connect the first serial line to us.
            wants_stub: whether to connect its gdb stub to us.

        Raises:
            MachineError: it did not start; the message is QEMU's.
        """
        self._program = words[0]
        self._messages = os.memfd_create("kinst-messages", os.MFD_CLOEXEC)
        ours, its_monitor = socket.socketpair()
        self.stub, its_stub = socket.socketpair()
        self._console = Console()
        inherited = [its_monitor.fileno(), its_stub.fileno(), *files, *([] if ram is None else [ram.descriptor])]
        # Closes its ends here: with ours open as well we would never see QEMU end.
        with its_monitor, its_stub, self._console:
            self._process = subprocess.Popen(
                [
                    *words,
                    *_added(its_monitor, ram),
                    *(CONSOLE_WORDS if wants_console else ()),
                    *(_stub_words(its_stub) if wants_stub else ()),
                ],
                stdin=self._console.its_input,
                stdout=self._console.its_output,
                stderr=self._messages,
                pass_fds=inherited,
                preexec_fn=_end_with_parent,
                process_group=0,  # Ctrl-C is for us only: we end QEMU
            )
        self._ended: End | None = None
        self.is_paused = True  # by us, or by somebody at another monitor or a debugger
        try:
            self.monitor = Monitor(ours)
        except MonitorError:
            self._process.terminate()
            self._process.wait()
            ours.close()
            self.stub.close()
            why = self._why()
            self._console.close()
            raise MachineError(why) from None
        weakref.finalize(
            self, _forget, self._process, self.monitor, self.stub
        )  # of a trace in Python that nobody closes

    def _why(self) -> str:
        """QEMU's message about why it did not start, or stopped."""
        printed = os.pread(self._messages, _MOST, 0) or self._console.heard()  # -M help is not printed as an error
        text = printed.decode(errors="replace").strip()
        message = text.partition("\n")[0].removeprefix(f"{self._program}: ")
        return f"{Path(self._program).name}: {visible(message) or self._silence()}"

    def _silence(self) -> str:
        # With a CPU of 32 bits, which some boards have without -cpu, QEMU takes no image of 64 and does not say so.
        status = self._process.returncode
        hint = "" if status < 0 else ": perhaps its CPU is not one for this image, and it needs another -cpu"
        return f"it ended with {status}, and said nothing{hint}"

    # -- the guest ----------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Let the guest run. Raises MachineError."""
        if self._ended is None:
            self.is_paused = False
            self._asked("cont")

    def pause(self) -> None:
        """Pause the guest. Raises MachineError."""
        if self._ended is None:
            self.is_paused = True
            self._asked("stop")

    def _asked(self, command: str) -> Any:
        """The answer to a command of QMP; None: the guest or QEMU has ended meanwhile, and `end` says why. Raises
        MonitorError."""
        try:
            return self.monitor.ask(command)
        except MonitorError:
            with suppress(MachineError):  # QEMU has ended: whoever asks for the end is told why
                if self.end() is not None:  # a guest that is off cannot go on
                    return None
            if self.has_ended():
                return None
            raise

    def end(self) -> End | None:
        """Why the guest has ended; None: it has not.

        Raises:
            MachineError: QEMU has ended, and not because of the guest.
        """
        if self._ended is None:
            for event, data in self.monitor.events():
                self._note(event, data)
        if self._ended is None and (status := self._process.poll()) is not None:
            if status < 0 or os.fstat(self._messages).st_size:
                raise MachineError(self._why())
            self._ended = End.POWER_OFF  # some devices end it at once, with the guest's exit code
        return self._ended

    def has_ended(self) -> bool:
        """Whether it is gone, or is about to be: its connections are closed first."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        return self._process.returncode is not None

    def _note(self, event: str, data: Mapping[str, Any]) -> None:
        if event == "STOP" and (answer := self._asked("query-status")) and answer["status"] in _BROKEN:
            raise MachineError(f"{self._why()} ({answer['status']})")
        if event in ("STOP", "RESUME"):
            self.is_paused = event == "STOP"
        elif event == "GUEST_PANICKED":
            self._ended = End.GUEST_PANIC
        elif event == "SHUTDOWN":
            self._ended = _ENDS.get(str(data.get("reason")), End.POWER_OFF)

    # -- the console --------------------------------------------------------------------------------------------------

    def heard(self) -> bytes:
        """The output of the guest since the last time."""
        return self._console.heard()

    def type(self, data: bytes) -> int:
        """Type at its console. Returns how many bytes were accepted."""
        return self._console.type(data)

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> int:
        """End it in any case; output that was not read is lost. Returns the exit code, which is QEMU's own: some
        devices let the guest set it."""
        if self._process.poll() is None:
            self._quit()
        self.monitor.close()
        self.stub.close()
        self._console.close()
        if self._messages >= 0:
            os.close(self._messages)
            self._messages = -1
        return max(self._process.returncode, 0)

    def _quit(self) -> None:
        try:
            self.monitor.ask("quit")
        except MachineError:
            self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _added(monitor: socket.socket, ram: SharedRam | None) -> list[str]:
    """The options that put us in control: paused, no reboot, and monitor and memory over our descriptors."""
    # -no-reboot makes a reset a shutdown, and -no-shutdown keeps QEMU and its memory after one.
    words = ["-S", "-no-reboot", "-no-shutdown", "-display", "none"]
    words += ["-chardev", f"socket,id=kinst-monitor,fd={monitor.fileno()}"]
    words += ["-mon", "chardev=kinst-monitor,mode=control"]
    if ram is not None:
        file = f"/proc/self/fd/{ram.descriptor}"
        # Without share=on the guest's stores would be in a private copy, which we do not see.
        words += ["-object", f"memory-backend-file,id={NAME},size={ram.size},mem-path={file},share=on"]
        words += ["-machine", f"memory-backend={NAME}"]
    return words


def _stub_words(stub: socket.socket) -> tuple[str, ...]:
    return "-chardev", f"socket,id=kinst-stub,fd={stub.fileno()}", "-gdb", "chardev:kinst-stub"


def _forget(process: subprocess.Popen[bytes], monitor: Monitor, stub: socket.socket) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    monitor.abandon()
    stub.close()


def _end_with_parent() -> None:
    """Called between fork and exec. QEMU gets SIGKILL when the thread that started it ends, so that it never outlives
    us (prctl(2), PR_SET_PDEATHSIG)."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
