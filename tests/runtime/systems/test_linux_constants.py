"""D's constants are those of the system that the image is. The tests run on Linux, whose numbers Python knows."""

import errno
import signal
from pathlib import Path

from click.testing import CliRunner

from kinst.runtime.cli import run
from kinst.runtime.systems.linux import LINUX
from tests.targets.debuginfo.compiled import compiled

PROGRAM = 'BEGIN { printf("%d %d %d %d\\n", EAGAIN, ENOTSOCK, SIGUSR1, CLD_DUMPED); exit(0); }'


def test_errors_and_signals_are_those_of_linux() -> None:
    numbered = {name: number for name, number in LINUX.constants.items() if name.startswith("E")}
    known = {name: getattr(errno, name) for name in dir(errno) if name.startswith("E")}
    assert {name: numbered[name] for name in known} == known
    assert set(numbered.values()) - set(known.values()) == {numbered["EHWPOISON"]} == {133}  # Python has it not
    signals = {name: one.value for name, one in signal.Signals.__members__.items() if not name.startswith("SIGRT")}
    assert {name: number for name, number in LINUX.constants.items() if name.startswith("SIG")} == signals


def test_an_image_of_linux_has_its_numbers(tmp_path: Path) -> None:
    kernel = compiled(tmp_path, "amd64", {"kernel.c": "int init_task; int start(void) { return 0; }"})
    for options, shown in (((), "11 88 10 3\n"), (("--os", "none"), "35 ")):
        program = PROGRAM if not options else PROGRAM.replace(", ENOTSOCK", ", 38")
        result = CliRunner().invoke(run, ["-q", *options, "--call", "start()", "-n", program, str(kernel.path)])
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(shown)


def test_without_an_image_they_are_freebsds() -> None:
    result = CliRunner().invoke(run, ["-q", "-n", PROGRAM.replace("ENOTSOCK", "ERANGE")])
    assert result.stdout == "35 34 30 3\n\n"
    result = CliRunner().invoke(run, ["-q", "-n", PROGRAM])
    assert "failed to resolve ENOTSOCK" in result.stderr
