"""Debian's kernels load a module of theirs in which functions and instructions are probed, use it and unload it.

It was patched beforehand, or is as it was."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from tests.images import at_hand, modules_of, real_image
from tests.system.linux_runs import run_linux
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

INIT = b"""#!/bin/sh
/bin/mount -t proc proc /proc
/bin/insmod /brd.ko rd_nr=1 rd_size=64
/bin/mknod /dev/ram0 b 1 0
echo written | /bin/dd of=/dev/ram0 bs=4096 count=4 conv=sync
/bin/dd if=/dev/ram0 bs=8 count=1
/bin/rmmod brd
/bin/reboot -f
"""
PROGRAM = """
kinst:brd:brd_init: /!instructions++/ { printf("%s\\n", execname); }
fbt:brd:brd_submit_bio:entry { submitted++; }
END { printf("instructions %d\\nsubmitted %d\\n", instructions > 10, submitted > 1); }
"""


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-arm64", "linux-riscv64"))
def test_a_patched_module_is_loaded_used_and_unloaded(name: str, tmp_path: Path) -> None:
    consoles = []
    module, patched = tmp_path / "brd.ko", tmp_path / "brd.kinst.ko"
    module.write_bytes(modules_of(name, "brd")["brd"])
    words = [str(module), "-p", "fbt:::", "-p", "kinst::brd_init:", "-o", str(patched)]
    assert CliRunner().invoke(rewrite, words).exit_code == 0
    for file, programs, more in ((module, [], []), (patched, [PROGRAM], ["--module", f"brd={patched}"])):
        initrd = tmp_path / "initrd"
        initrd.write_bytes(_file_system(name.rpartition("-")[2], file.read_bytes()))
        text, console = run_linux(name, initrd, programs, more=more)
        consoles.append(console[console.index("Run /init") :])
    plain, traced = (re.sub(r"brd: module verification failed.*\n", "", one) for one in consoles)
    assert "\nwritten\n" in plain and traced == plain
    assert text.split() == ["insmod", "instructions", "1", "submitted", "1"]


COUNTED = r"""
fbt:brd::entry { @in[probefunc] = count(); }
fbt:brd::return { @out[probefunc] = count(); }
fbt:brd:brd_submit_bio:entry { @callers[func(caller)] = count(); @size[args[0]->bi_iter.bi_size > 0] = count(); }
END {
    printa("in %s %@d\n", @in); printa("out %s %@d\n", @out);
    printa("from %A %@d\n", @callers); printa("size %d %@d\n", @size);
}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    # Those whose package has the modules, too.
    at_hand("linux-amd64", "linux-arm64", "linux-riscv64", "linux-6.12-amd64", "linux-6.12-arm64"),
)
def test_a_module_is_probed_as_it_loads_again_and_again(name: str, tmp_path: Path) -> None:
    module, patched, initrd = (tmp_path / one for one in ("brd.ko", "brd.kinst.ko", "initrd"))
    module.write_bytes(modules_of(name, "brd")["brd"])
    assert CliRunner().invoke(rewrite, [str(module), "-p", "fbt:::", "-o", str(patched)]).exit_code == 0
    init = INIT.replace(b"/bin/reboot", INIT[INIT.index(b"/bin/insmod") : INIT.index(b"/bin/reboot")] + b"/bin/reboot")
    found = []
    none = ["-Z"]  # where returns go through thunks, a patched file has none
    given = [*none, "--module", f"brd={patched}"]
    ways: list[tuple[Path, list[str], list[str]]] = [(module, [], []), (module, [COUNTED], [])]
    for file, programs, more in (*ways, (patched, [COUNTED], given), (patched, [COUNTED], none)):
        initrd.write_bytes(_file_system(name.rpartition("-")[2], file.read_bytes(), init))
        text, console = run_linux(name, initrd, programs, more=more)
        text = re.sub(r"(?m)^from .*`", "from ", text)
        found.append((set(text.split("\n")), re.sub(r"brd: module verification failed.*\n", "", console)))
    (_, plain), (loaded, console), (beforehand, _), (found_patched, _) = found
    assert plain.count("\nwritten\n") == 2
    assert console[console.index("Run /init") :] == plain[plain.index("Run /init") :]
    entries = {line for line in beforehand if line.startswith(("in ", "from ", "size "))}
    assert len(entries) > 6 and entries <= loaded and beforehand == found_patched
    # Of all that was entered, also where the first instruction is relocated, each has returned.
    counts = [{line.partition(" ")[2] for line in loaded if line.startswith(way)} for way in ("in ", "out ")]
    assert counts[0] == counts[1] and "init_module 2" in counts[0]


@pytest.mark.long
def test_breakpoints_without_a_handler_are_told_of(tmp_path: Path) -> None:
    name, initrd = "linux-amd64", tmp_path / "initrd"
    module, patched = tmp_path / "brd.ko", tmp_path / "brd.kinst.ko"
    module.write_bytes(modules_of(name, "brd")["brd"])
    assert CliRunner().invoke(rewrite, [str(module), "-p", "fbt:::", "-o", str(patched)]).exit_code == 0
    initrd.write_bytes(_file_system("amd64", patched.read_bytes()))
    words = ["-q", "--clock", "icount", "--memory", "256M", "--timeout", "30s", "--console", str(tmp_path / "console")]
    result = CliRunner().invoke(run, [*words, "-n", "BEGIN {}", "--initrd", str(initrd), str(real_image(name))])
    assert "brd: was patched by kinst-rewrite, and its breakpoints have no handler" in result.stderr


def _file_system(machine: str, module: bytes, init: bytes = INIT) -> bytes:
    busybox = Entry("bin/busybox", FILE, real_image(f"busybox-{machine}").read_bytes())
    links = (
        Entry(f"bin/{one}", LINK, b"busybox") for one in ("sh", "mount", "insmod", "rmmod", "mknod", "dd", "reboot")
    )
    folders = (Entry(one, DIRECTORY) for one in ("bin", "dev", "proc"))
    console = Entry("dev/console", CHARACTERS, device=(5, 1))
    return archive([*folders, console, busybox, *links, Entry("brd.ko", FILE, module), Entry("init", FILE, init)])
