"""What Python code says of a machine and of tracing: words, files and numbers become a request's, or one line."""

from pathlib import Path
from typing import Any, get_args

import pytest

from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.machine.disk import DiskMode
from kinst.runtime.tracing.given import (
    ClockName,
    DiskModeName,
    Machine,
    MethodName,
    Options,
    configuration_of,
    options_of,
)
from kinst.targets.errors import UsageError
from kinst.targets.method import Method


def test_the_words_are_those_of_the_command_line() -> None:
    assert get_args(MethodName) == tuple(one.value for one in Method)
    assert get_args(ClockName) == tuple(one.value for one in ClockKind)
    assert get_args(DiskModeName) == tuple(one.value for one in DiskMode)


def test_files_are_read_and_disks_are_opened_for_each_trace(tmp_path: Path) -> None:
    file, disk = tmp_path / "file", tmp_path / "disk"
    file.write_bytes(b"content")
    disk.write_bytes(bytes(512))
    machine = Machine(initrd=str(file), dtb=b"tree", disks=[disk, (str(disk), "ro")], load={4096: b"bytes"})

    first, second = configuration_of(machine), configuration_of(machine)

    assert (bytes(first.initrd or b""), first.device_tree) == (b"content", b"tree")
    assert [one.is_read_only for one in first.disks] == [False, True]
    assert first.disks[0] is not second.disks[0]
    assert [(one.address, one.content) for one in first.files] == [(4096, b"bytes")]
    assert configuration_of(Machine(disks=first.disks)).disks == first.disks  # as they are


def test_options_of_d_are_texts_numbers_and_switches() -> None:
    options = options_of(Options(d={"strsize": 4096, "bufsize": "1m", "zdefs": True, "flowindent": False}))

    assert options.text("strsize") == "4096"
    assert options.text("bufsize") == "1048576"
    assert options.is_on("zdefs")
    assert not options.is_set("flowindent")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Machine(clock=_any("icnt")), "clock icnt: is one of host, icount; nearest icount"),
        (lambda: Machine(on_panic=_any("stop")), "on_panic stop: is one of end, continue"),
        (lambda: Options(method=_any("jmp")), "method jmp: is one of .*; nearest jump"),
        (lambda: Options(d={"strsiz": 1}), "option strsiz: Invalid option name; nearest strsize"),
        (lambda: configuration_of(Machine(disks=[("d", _any("w"))])), "disk d: mode w: is one of copy, rw, ro"),
        (lambda: configuration_of(Machine(disks=["/no/disk"])), "/no/disk: cannot be a disk"),
        (lambda: configuration_of(Machine(initrd="/no/initrd")), "initrd /no/initrd: cannot be read"),
    ],
)
def test_what_is_wrong_is_one_line(make: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make()


def _any(value: Any) -> Any:
    return value
