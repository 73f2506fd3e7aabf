"""Functions of Linux on three machines are called in the state of a snapshot, one by one and by a fuzzer."""

import re
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_fuzz, kinst_run
from tests.images import real_image

_EINVAL = 0xFFFF_FFEA


@pytest.mark.long
@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
def test_functions_return_what_c_says(machine: str, tmp_path: Path) -> None:
    image, file, rows = real_image(f"linux-{machine}"), tmp_path / "linux.snap", tmp_path / "rows"
    program = "fbt::kernel_init:entry { exit(0); }"
    kinst_run(
        image, "-qn", program, "--clock", "icount", "--console", tmp_path / "console", "--snapshot-at", f"END={file}"
    )
    texts = ["1", "4321", "-77", "99x", ""]
    rows.write_text("".join(f'"{one}"\n' for one in texts))
    for call, expected in (
        ("kstrtoint($1, 10, {0})", [0, 0, 0, _EINVAL, _EINVAL]),
        ("strlen($1)", [len(one) for one in texts]),
    ):
        done = kinst_run(image, "--from", file, "--call", call, "--call-each", rows)
        assert [int(one, 16) & 0xFFFF_FFFF for one in re.findall(r"(?m)^ *(0x[0-9a-f]+) ", done.stdout)] == expected, (
            done.stderr
        )
    fault = kinst_run(image, "--from", file, "--call", "strlen(1)")
    assert fault.returncode == 1
    assert "read of 0x1, where nothing is" in fault.stderr
    fuzzed = kinst_fuzz(image, "--from", file, "--call", "kstrtoint($text, 10, {0})", "--runs", "300")
    assert fuzzed.returncode == 0, fuzzed.stderr
    assert re.match(r"300 calls: [1-9]", fuzzed.stdout)
