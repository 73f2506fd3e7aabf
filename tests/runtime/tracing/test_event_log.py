"""--log: a line for each kind of event, repeats once in a while, and at the end how many they were."""

from pathlib import Path

import pytest

from kinst.runtime.tracing.host.log_request import LogKind, log_request
from kinst.targets.errors import UsageError
from tests.runtime.machine.riscv_words import A0, T1, ZERO, jal, la, load, store
from tests.runtime.tracing.test_stuck_watch import NOBODYS, UART, firmware, kinst_run

TEST = la(A0, 0x10_0000)


def told(image: Path, *options: str, timeout: str = "20ms") -> list[str]:
    lines = kinst_run(image, "--clock", "icount", *options, timeout=timeout).stderr.splitlines()
    return [line for line in lines if "log" not in line and "timeout: CPU" not in line and " spins " not in line]


def test_an_access_that_nothing_answers_and_its_exception(tmp_path: Path) -> None:
    lines = told(firmware(tmp_path, *NOBODYS, load(T1, A0, 0xC, size=2)), "--log", "unmodelled,exceptions")
    place = "by CPU 0 in firmware`start+0x34"
    assert lines == [
        f"kinst-run: unmodelled: read at address 0xd001200c {place}",
        f"kinst-run: exceptions: load-access-fault (0x5) {place}: address 0xd001200c, syndrome 0x5",
    ]


def test_a_register_that_a_device_does_not_have(tmp_path: Path) -> None:
    """Of the console's window in the machine's record, the model answers eight bytes."""
    image = firmware(tmp_path, *UART, store(ZERO, A0, 0x7C, size=2), *TEST, store(ZERO, A0, 0x10, size=2))
    first, second = told(image, "--log", "devices,unmodelled")
    assert first == "kinst-run: unmodelled: write of 4 bytes at address 0x1000007c by CPU 0 in firmware`start+0x34"
    assert (
        second == "kinst-run: devices: test has no register at 0x10: write of 4 bytes by CPU 0 in firmware`start+0x48"
    )


def test_what_comes_again_is_counted(tmp_path: Path) -> None:
    """A loop of one read: a line at once, one after each second of the machine's time, and one at the end."""
    image = firmware(tmp_path, *UART, load(T1, A0, 0x40, size=2), jal(ZERO, -4))
    log = tmp_path / "log"
    kinst_run(image, "--clock", "icount", "--log", "unmodelled", "--log-file", str(log), timeout="500us")
    first, last = log.read_text().splitlines()
    assert first == "unmodelled: read of 4 bytes at address 0x10000040 by CPU 0 in firmware`start+0x34"
    assert last.startswith(f"{first}, ")
    again = int(last.removeprefix(f"{first}, ").removesuffix(" times more").replace(",", ""))
    assert 24_000 < again <= 25_000  # of 50,000 instructions of 10 ns


def test_kinds() -> None:
    assert log_request(None, None) is None
    wanted = log_request("exceptions, devices", Path("x"))
    assert wanted is not None
    assert wanted.kinds == {LogKind.EXCEPTIONS, LogKind.DEVICES}


@pytest.mark.parametrize(
    ("kinds", "file", "message"),
    [
        ("int", None, "--log int: no kind 'int': there are unmodelled, exceptions, devices"),
        ("", None, "--log : no kind ''"),
        (None, Path("x"), "--log-file x: there is nothing to log: give --log"),
    ],
)
def test_what_is_no_log(kinds: str | None, file: Path | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        log_request(kinds, file)
