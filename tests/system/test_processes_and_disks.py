"""Linux' processes, threads, signals and disks by proc and io, beside what the kernel and its programs tell."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.gated import long_after_first
from tests.images import at_hand, modules_of, real_image
from tests.runtime.attached.programs import COMPILERS
from tests.samples.machines import SAMPLES
from tests.system.linux_runs import run_linux
from tests.system.test_linux_disks import MODULES
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

KERNELS = ("linux-amd64", "linux-6.12-amd64", "linux-arm64", "linux-6.12-arm64", "linux-riscv64", "linux-7-riscv64")
NO_MODULES = "linux-7-riscv64"  # for disks, in the package of its image
APPLETS = ("sh", "mount", "insmod", "cat", "sleep", "true", "dd", "grep", "reboot")
BLOCK_IO = SAMPLES / "d" / "linux" / "block-io.d"
# One program each; the shell forks for them.
INIT = """#!/bin/sh
{modules}
/bin/mount -t devtmpfs none /dev
/bin/mount -t proc none /proc
/bin/mount -t sysfs none /sys
/bin/true
/missing
/script
/threads
echo threads $?
/bin/sleep 100 &
kill $!
wait $!
echo sleep $?
/bin/sh -c 'trap "echo caught" USR1; kill -USR1 $$; kill -WINCH $$; kill -SEGV $$'
echo shell $?
/bin/dd if=/dev/vda of=/dev/null bs=64k
/bin/dd if=/bin/busybox of=/dev/vda bs=4k count=5 conv=fsync
/bin/cat /sys/block/vda/stat
/bin/grep processes /proc/stat
/bin/reboot -f
"""
PROGRAM = r"""
proc:::create { @parents[args[1]->pr_pid == pid && args[0]->pr_ppid == pid] = count(); processes++; }
proc:::lwp-create { @threads[args[1]->pr_fname] = sum(args[0]->pr_lwpid != args[1]->pr_pid); }
proc:::lwp-create { tasks++; made[args[0]->pr_lwpid] = 1; }
proc:::lwp-start { @first[made[tid]] = count(); made[tid] = 0; }
fbt::show_stat:entry { printf("processes %d\n", tasks); }
proc:::lwp-exit { tasks_ended++; }
proc:::exit { printf("end %s %d\n", execname, args[0]); ended++; }
proc:::exec { printf("try %s\n", stringof(args[0])); }
proc:::exec-success { printf("exec %s %s\n", stringof(args[0]), curpsinfo->pr_fname); }
proc:::exec-failure { printf("failed %d\n", args[0]); }
proc:::signal-send { printf("send %s %d %d\n", execname, args[0]->pr_lwpid == args[1]->pr_pid, args[2]); }
proc:::signal-discard { printf("discard %d\n", args[2]); }
proc:::signal-handle { printf("handle %s %d %d %d\n", execname, args[0], args[1]->si_signo, args[2] != 0); }
io:::start { size[args[0]->b_edev, args[0]->b_blkno] = args[0]->b_bcount; started++; }
io:::done
/size[args[0]->b_edev, args[0]->b_blkno] == args[0]->b_bcount && !args[0]->b_error/
{
    this->way = args[0]->b_flags & B_READ ? "read" : "write";
    @requests[this->way, args[1]->dev_statname, args[1]->dev_pathname, args[2]->fi_name] = count();
    @bytes[this->way, args[1]->dev_major == args[0]->b_edev >> 20] = sum(args[0]->b_bcount);
    done++;
}
END
{
    printf("alive %d %d\nio %d\n", processes - ended, tasks - tasks_ended, started - done);
    printa("first %d %@d\n", @first);
    printa("parents %d %@d\n", @parents);
    printa("threads %s %@d\n", @threads);
    printa("requests %s %s %s %s %@d\n", @requests);
    printa("bytes %s %d %@d\n", @bytes);
}
"""
EXECUTED = (
    *("/bin/mount", "/bin/mount", "/bin/mount", "/bin/true", "/missing", "/script", "/threads", "/bin/sh"),
    *("/bin/dd", "/bin/dd", "/bin/cat", "/bin/grep", "/bin/reboot"),
)


def threads_program(machine: str, folder: Path) -> bytes:
    output = folder / "threads"
    options = ("-static", "-nostdlib", "-ffreestanding", "-Wl,--build-id=none")
    subprocess.run([COMPILERS[machine], *options, "-o", output, Path(__file__).with_name("threads.c")], check=True)
    return output.read_bytes()


def initial_file_system(kernel: str, folder: Path) -> bytes:
    machine = kernel.rpartition("-")[2]
    modules = modules_of(kernel, "|".join(MODULES))
    load = "\n".join(f"/bin/insmod /{name}.ko" for name in MODULES if name in modules)
    return archive(
        [
            *(Entry(name, DIRECTORY) for name in ("bin", "dev", "sys", "proc")),
            Entry("dev/console", CHARACTERS, device=(5, 1)),
            *(Entry(f"{name}.ko", FILE, content) for name, content in modules.items()),
            Entry("bin/busybox", FILE, real_image(f"busybox-{machine}").read_bytes()),
            *(Entry(f"bin/{name}", LINK, b"busybox") for name in APPLETS),
            Entry("threads", FILE, threads_program(machine, folder)),
            Entry("script", FILE, b"#!/bin/cat\nsaid by cat\n"),
            Entry("init", FILE, INIT.format(modules=load).encode()),
        ]
    )


@pytest.mark.parametrize("name", long_after_first(at_hand(*KERNELS)))
def test_a_real_kernel_has_the_events_and_their_types(name: str) -> None:
    result = CliRunner().invoke(run, ["-e", "-n", PROGRAM, str(real_image(name))])
    assert result.exit_code == 0, result.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*KERNELS))
def test_all_that_is_told_agrees(name: str, tmp_path: Path) -> None:
    initrd, disk = tmp_path / "initrd", tmp_path / "disk"
    initrd.write_bytes(initial_file_system(name, tmp_path))
    disk.write_bytes(bytes(1 << 20))
    text, console = run_linux(name, initrd, [PROGRAM], more=["--disk", str(disk), "-s", str(BLOCK_IO)])
    _check_processes(text, console)
    _check_signals(text, console)
    if name != NO_MODULES:
        _check_disk(text, console)


def _check_processes(text: str, console: str) -> None:
    tried = [path for path in re.findall(r"^try (.+)$", text, re.MULTILINE) if "modprobe" not in path]
    assert [path for path in tried if path not in ("/init", "/bin/insmod", "/bin/sleep")] == list(EXECUTED)
    executed = re.findall(r"^exec (.+) (.+)$", text, re.MULTILINE)
    assert [path for path, _ in executed] == [path for path in tried if path != "/missing"]
    assert all(path.endswith(f"/{program}") for path, program in executed)
    assert set(re.findall(r"^failed (.+)$", text, re.MULTILINE)) == {"2"}  # ENOENT
    said = re.search(r"^processes \d+$", console, re.MULTILINE)
    assert said is not None
    assert f"\n{said[0]}\n" in text
    # All that were made ran, each as itself; and their parents made them.
    made = int(said[0].split()[1]) + 1  # reboot
    assert _rows(text, "first") == {("1",): made}
    assert _rows(text, "parents") == {("1",): made - 3}
    threads = {program: count for (program,), count in _rows(text, "threads").items() if count}
    assert threads == {"threads": 3}
    alive = re.search(r"^alive (\d+) (\d+)$", text, re.MULTILINE)
    assert alive is not None
    assert alive[1] == alive[2]
    ends = Counter(re.findall(r"^end (\S+) (\d)$", text, re.MULTILINE))
    for program, times in {"mount": 3, "true": 1, "script": 1, "threads": 1, "dd": 2, "cat": 1, "grep": 1}.items():
        assert ends[program, "1"] == times  # CLD_EXITED
    killed = sorted(program for program, how in ends if how == "2")
    assert killed in (["init", "sh"], ["sh", "sleep"])  # sleep is killed before or after execve()
    assert "threads 3\nTerminated\nsleep 143\ncaught\nSegmentation fault\nshell 139\n" in console


def _check_signals(text: str, console: str) -> None:
    sent = Counter(re.findall(r"^send (\S+) 1 (\d+)$", text, re.MULTILINE))
    assert (sent["init", "15"], sent["sh", "10"], sent["sh", "11"]) == (1, 1, 1)
    handled = set(re.findall(r"^handle (\S+) (\d+) (\d+) ([01])$", text, re.MULTILINE))
    assert {("sh", "10", "10", "1"), ("sh", "11", "11", "0"), ("init", "17", "17", "1")} <= handled
    assert ("threads", "9", "0", "0") in handled  # by exit_group(), which tells nothing about the signal
    assert "discard 28\n" in text  # SIGWINCH, of which nobody has heard


def _check_disk(text: str, console: str) -> None:
    """/sys/block/vda/stat: requests, merged ones, sectors and ms, of reads and of writes. A flush is a write of 0."""
    said = re.search(r"^ +(\d+) +\d+ +(\d+) +\d+ +(\d+) +\d+ +(\d+) ", console, re.MULTILINE)
    assert said is not None
    reads, read_sectors, writes, written_sectors = map(int, said.groups())
    requests = _rows(text, "requests")
    where = ("vda", "/dev/vda", "<none>")
    assert set(requests) == {("read", *where), ("write", *where)}
    assert requests["read", *where] == reads
    assert requests["write", *where] in (writes - 1, writes)
    assert _rows(text, "bytes") == {("read", "1"): read_sectors * 512, ("write", "1"): written_sectors * 512}
    assert "\nio 0\n" in text
    for heading in ("dd reads from vda (bytes)\n", "dd writes to vda (bytes)\n"):
        assert f"\n{heading}" in text


def _rows(text: str, first: str) -> dict[tuple[str, ...], int]:
    """Lines of an aggregation: its key and value."""
    rows = (line.split()[1:] for line in text.splitlines() if line.startswith(f"{first} "))
    return {tuple(key): int(value) for *key, value in rows}
