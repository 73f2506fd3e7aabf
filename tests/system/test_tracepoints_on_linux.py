"""Tracepoints of Debian's kernels beside what is counted without them, on all three machines."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, real_image
from tests.linux_programs import START, initial_file_system

KERNELS = (
    *("linux-amd64", "linux-arm64", "linux-riscv64"),
    *("linux-6.12-amd64", "linux-6.12-arm64", "linux-7-riscv64"),
)
PROGRAM = """
sdt:sched::sched_switch { @["tracepoint"] = count(); }
sched:::off-cpu { @["off-cpu"] = count(); @to[args[1]->pr_fname] = count(); }
sched:::on-cpu { @["on-cpu"] = count(); @at[execname] = count(); }
fbt::__switch_to:entry { @["switched"] = count(); }
sdt:irq::irq_handler_entry { @irq[stringof(args[1]->name)] = count(); }
END { printa("%s %@d\\n", @); printa("to %s %@d\\n", @to); printa("at %s %@d\\n", @at); printa("irq %s %@d\\n", @irq); }
"""


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*KERNELS))
def test_switches_of_tasks_are_all_told_and_rightly(name: str) -> None:
    options = ("-q", "--clock", "icount", "--timeout", "4s", "--console", "/dev/null", "-n", PROGRAM)
    result = CliRunner().invoke(run, [*options, str(real_image(name))])
    assert result.exit_code == 0, result.stderr
    assert "error on enabled probe" not in result.stderr
    counts = {row[0]: int(row[1]) for row in re.findall(r"^(\S+) (\d+)$", result.stdout, re.MULTILINE)}
    assert counts["tracepoint"] == counts["switched"] == counts["off-cpu"] == counts["on-cpu"] > 50
    # Who is told to come is who then runs.
    come, run_now = (set(re.findall(rf"^{word} (.+) (\d+)$", result.stdout, re.MULTILINE)) for word in ("to", "at"))
    assert come == run_now
    assert re.search(r"^irq \S*timer \d+$", result.stdout, re.MULTILINE)


# `record-cmd`, which is on unless it is turned off, is a second tracer of the event: the kernel calls a list of them.
OWN_TRACE = f"""{START}
mkdir -p /sys; mount -t sysfs sysfs /sys; mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo 1 > events/sched/sched_switch/enable
i=0; while [ $i -lt 10 ]; do i=$((i + 1)); /bin/true; sleep 0.01; done
echo 0 > events/sched/sched_switch/enable
echo traced $(grep -c sched_switch: trace)
i=0; while [ $i -lt 5 ]; do i=$((i + 1)); /bin/true; sleep 0.01; done
poweroff -f
"""


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*KERNELS))
def test_switches_are_told_while_the_guest_traces_them_itself(name: str, tmp_path: Path) -> None:
    initrd, console = tmp_path / "initrd.cpio", tmp_path / "console"
    machine = name.rpartition("-")[2]
    initrd.write_bytes(initial_file_system(machine, OWN_TRACE))
    words = ("-q", "--clock", "icount", "--timeout", "100s", "--initrd", str(initrd), "--console", str(console))
    append = f"console={'ttyAMA0' if machine == 'arm64' else 'ttyS0'}"
    result = CliRunner().invoke(run, [*words, "--append", append, "-n", PROGRAM, str(real_image(name))])
    assert result.exit_code == 0, result.stderr
    assert "error on enabled probe" not in result.stderr
    traced = re.search(r"^traced (\d+)", console.read_text(), re.MULTILINE)
    assert traced is not None
    assert int(traced[1]) > 20
    counts = {row[0]: int(row[1]) for row in re.findall(r"^(\S+) (\d+)$", result.stdout, re.MULTILINE)}
    assert counts["tracepoint"] == counts["switched"] == counts["off-cpu"] == counts["on-cpu"] > int(traced[1])
