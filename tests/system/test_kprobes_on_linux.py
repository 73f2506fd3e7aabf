"""Linux' kprobes at instructions that are probed from outside as well: the guest's figures are those of a plain run."""

from pathlib import Path

import pytest

from tests.images import at_hand, real_image
from tests.system.linux_runs import run_linux
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

# Where fbt has its entry, an instruction in the middle, and a return, in vfs_read() of each kernel.
PLACES = {"linux-amd64": (5, 28, 236), "linux-arm64": (8, 32, 296), "linux-riscv64": (8, 26, 222)}
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs trace /sys/kernel/tracing
T=/sys/kernel/tracing
for at in {places}; do echo "p:at$at vfs_read+$at" >> $T/kprobe_events; done
echo 'r:left vfs_read' >> $T/kprobe_events
for one in $T/events/kprobes/*/enable; do echo 1 > $one; done
head -c 100 /dev/zero | wc -c
cat $T/kprobe_profile
for one in $T/events/kprobes/*/enable; do echo 0 > $one; done
echo > $T/kprobe_events
wc -c < /init
echo 'p:again vfs_read+{first}' > $T/kprobe_events
echo 1 > $T/events/kprobes/again/enable
wc -c < /init
cat $T/kprobe_profile
echo 0 > $T/events/kprobes/again/enable
wc -c < /init
poweroff -f
"""


def initial_file_system(machine: str, init: str) -> bytes:
    folders = (Entry(one, DIRECTORY) for one in ("bin", "sbin", "usr", "usr/bin", "usr/sbin", "dev", "proc", "sys"))
    devices = (Entry("dev/console", CHARACTERS, device=(5, 1)), Entry("dev/null", CHARACTERS, device=(1, 3)))
    busybox = Entry("bin/busybox", FILE, real_image(f"busybox-{machine}").read_bytes())
    return archive([*folders, *devices, busybox, Entry("bin/sh", LINK, b"busybox"), Entry("init", FILE, init.encode())])


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand(*PLACES))
def test_kprobes_fire_at_probed_instructions_as_in_a_plain_run(name: str, tmp_path: Path) -> None:
    first, middle, _ = PLACES[name]
    initrd = tmp_path / "initrd"
    init = INIT.format(places=" ".join(map(str, PLACES[name])), first=first)
    initrd.write_bytes(initial_file_system(name.removeprefix("linux-"), init))
    _, plain = run_linux(name, initrd)
    told = [line.split() for line in plain.splitlines() if line.startswith(("  at", "  again"))]
    assert len(told) == len(PLACES[name]) + 1
    assert all(int(hits) > 0 and missed == "0" for _, hits, missed in told)
    text, console = run_linux(
        name,
        initrd,
        [
            "fbt::vfs_read:entry { self->in = 1; @hits[probename] = count(); @recorded = sum(arg0 != 0); }"
            f"kinst::vfs_read:{middle} {{ @hits[probename] = count(); }}"
            "fbt::vfs_read:return { @hits[probename] = count(); }"
            'END { printa("%s %@d\\n", @hits); printa("recorded %@d\\n", @recorded); }'
        ],
    )
    assert console == plain
    hits = dict(line.split() for line in text.splitlines() if line.strip())
    assert set(hits) == {"entry", "return", "recorded", str(middle)}
    assert len(set(hits.values())) == 1
