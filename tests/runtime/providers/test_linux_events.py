"""proc and io: which of a kernel's events are theirs, and what is told of each."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.runtime.patched.test_tracepoints import COMPILERS, SOURCE
from tests.targets.debuginfo.compiled import compiled as linked

GUEST = Path(__file__).with_name("linux_events.c")
PROC = r"""
proc:::create { printf("create %d %s of %d\n", args[0]->pr_pid, args[0]->pr_fname, args[1]->pr_pid); }
proc:::lwp-create { printf("lwp-create %d of %d\n", args[0]->pr_lwpid, args[1]->pr_pid); }
proc:::lwp-start, proc:::lwp-exit { printf("%s\n", probename); }
proc:::exec, proc:::exec-success { printf("%s %s\n", probename, stringof(args[0])); }
proc:::exec-failure { printf("%s %d\n", probename, args[0] == ENOENT); }
proc:::signal-send, proc:::signal-discard
{
    printf("%s %d of %d: %d\n", probename, args[0]->pr_lwpid, args[1]->pr_pid, args[2]);
}
proc:::signal-handle
{
    printf("%s %d %x: %d %d %d ", probename, args[0], args[2], args[1]->si_signo, args[1]->si_code, args[1]->si_pid);
    printf("%d %d %d\n", args[1]->si_uid, args[1]->si_status, args[1]->si_errno);
}
proc:::exit { printf("exit %d %d %d\n", args[0] == CLD_EXITED, args[0] == CLD_KILLED, args[0] == CLD_DUMPED); }
"""
PROC_FIRED = """\
create 7 worker of 1
lwp-create 7 of 7
lwp-create 8 of 7
lwp-start
exec /bin/true
exec-failure 1
exec /bin/true
exec-success /bin/true
signal-send 8 of 7: 17
signal-send 7 of 7: 28
signal-discard 7 of 7: 28
signal-handle 17 4000: 17 1 7 5 3 0
signal-handle 9 4000: 0 0 0 0 0 0
lwp-exit
lwp-exit
exit 1 0 0
lwp-exit
exit 0 1 0
lwp-exit
exit 0 0 1
"""
IO = r"""
io:::start, io:::done
{
    printf("%s %d+%d of %d: %d %d %d, ", probename, args[0]->b_blkno, args[0]->b_bcount, args[0]->b_bufsize,
        args[0]->b_error, args[0]->b_resid, args[0]->b_edev);
    printf("%s%s%s%s, ", args[0]->b_flags & B_READ ? "read" : "", args[0]->b_flags & B_WRITE ? "write" : "",
        args[0]->b_flags & B_ASYNC ? " async" : "", args[0]->b_flags & B_ERROR ? " error" : "");
    printf("%d %d %d %s %s %s, ", args[1]->dev_major, args[1]->dev_minor, args[1]->dev_instance,
        args[1]->dev_name, args[1]->dev_statname, args[1]->dev_pathname);
    printf("%s %d %s\n", args[2]->fi_pathname, args[2]->fi_offset, args[2]->fi_fs);
}
"""
VDB = "254 16 0 vdb vdb /dev/vdb, <none> 0 <none>"
RAM = "1 0 0 ram0 ram0 /dev/ram0, <none> 0 <none>"
IO_FIRED = f"""\
start 2048+12288 of 12288: 0 0 {254 << 20 | 16}, read, {VDB}
done 2056+8192 of 8192: 0 0 {254 << 20 | 16}, read, {VDB}
start 8+512 of 512: 0 0 {254 << 20 | 16}, write async, {VDB}
done 8+512 of 512: 5 512 {254 << 20 | 16}, write async error, {VDB}
start 16+1024 of 1024: 0 0 {1 << 20}, write, {RAM}
done 16+1024 of 1024: 5 1024 {1 << 20}, write error, {RAM}
"""


def told(folder: Path, machine: str, program: str, *more: str) -> str:
    options = ("-g", "-O2", "-Wl,-Ttext=0x200000", f"-I{SOURCE.parent}", *COMPILERS[machine][1:], *more)
    image = linked(folder, machine, {"kernel.c": GUEST.read_text()}, *options)
    result = CliRunner().invoke(run, ["-q", "--clock", "icount", "--call", "start()", "-n", program, str(image.path)])
    assert result.exit_code == 0, result.output
    return result.stdout.partition("\nstart() =")[0]


@pytest.mark.parametrize("machine", COMPILERS)
def test_events_are_told_as_dtrace_tells_them(machine: str, tmp_path: Path) -> None:
    assert told(tmp_path, machine, PROC) == PROC_FIRED
    assert told(tmp_path, machine, IO) == IO_FIRED


def test_disks_of_older_kernels_are_told_of_alike(tmp_path: Path) -> None:
    """Of 5.10: bios have the disk, and tracepoints the queue first."""
    assert told(tmp_path, "riscv64", IO, "-DOLD") == IO_FIRED
