"""Linux' own lists, walked as typed values at a hit, are what its programs show."""

import re
from pathlib import Path

import pytest

from kinst.runtime import Hit, Machine, follow, list_for_each_entry, open_image
from tests.images import at_hand, real_image
from tests.linux_programs import initial_file_system

MACHINES = ("linux-amd64", "linux-arm64", "linux-riscv64", "linux-6.12-amd64", "linux-6.12-arm64", "linux-6.12-riscv64")
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
sleep 100 &
sleep 200 &
sleep 5  # until threads that only start the kernel have ended
echo tasks; ps -o pid,comm; echo systems; cat /proc/filesystems; echo end
sync
reboot -f
"""


class Seen:
    """What an action found when `sync` was called."""

    def __init__(self) -> None:
        self.tasks: set[tuple[int, str]] = set()
        self.systems: list[str] = []
        self.files: set[str] = set()
        self.current = self.queued = ""

    def at_sync(self, hit: Hit) -> None:
        if self.tasks:  # reboot(8) calls it, too
            return
        first = hit["init_task"]
        tasks = list_for_each_entry("struct task_struct", first.tasks, "tasks")
        self.tasks = {(int(task.pid), task.comm.string()) for task in tasks}
        systems = follow(hit.objects.object("struct file_system_type *", hit["file_systems"].address_ or 0), "next")
        self.systems = [one.name.string() for one in systems]
        assert hit.curthread is not None
        self.current = hit.curthread.comm.string()
        queue = hit.objects.per_cpu("runqueues", hit.cpu)
        assert queue.curr == hit.curthread
        assert queue.cpu == hit.cpu
        assert hit.curthread.cpus_ptr == hit.curthread.cpus_mask.address_of_()
        self.queued = queue.curr.comm.string()

    def at_read(self, hit: Hit) -> None:
        self.files.add(hit.args[0].f_path.dentry.d_name.name.string())


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*MACHINES))
def test_tasks_and_file_systems_are_what_programs_show(name: str, tmp_path: Path) -> None:
    seen, machine = Seen(), name.rpartition("-")[2]
    guest = Machine(clock="icount", initrd=initial_file_system(machine, INIT), memory=256 << 20)
    actions = {"syscall::sync:entry": seen.at_sync, "fbt::vfs_read:entry": seen.at_read}
    with open_image(real_image(name)) as image, image.trace(actions=actions, machine=guest) as trace:
        trace.run(seconds=120)
        console = trace.console.decode(errors="replace").replace("\r", "")
    shown = console.partition("tasks\n")[2].partition("end\n")[0]
    tasks, _, systems = shown.partition("systems\n")
    told = {int(pid): comm for pid, comm in re.findall(r"^ +(\d+) (\S+)$", tasks, re.MULTILINE) if comm != "ps"}
    assert len(told) > 20
    found = {pid: comm for pid, comm in seen.tasks if comm != "sync"}
    assert found.keys() == told.keys()
    # /proc adds what a worker works on to its name (wq_worker_comm), or has it in full.
    assert all(comm == found[pid] or comm.startswith(("kworker", found[pid])) for pid, comm in told.items())
    assert seen.current == seen.queued == "sync"
    assert seen.systems == re.findall(r"(\S+)$", systems, re.MULTILINE)
    assert {"init", "stat"} <= seen.files  # cat has no need to read
