"""Probes where Linux enters and leaves the kernel, faults, ticks and switches, while 200 programs start and end, and
one runs into a breakpoint of its own: the console is what it is without them."""

import re
import struct
from collections import Counter
from pathlib import Path

import pytest

from tests.images import at_hand
from tests.linux_programs import initial_file_system
from tests.system.linux_runs import run_linux
from tests.writers.cpio import FILE, Entry
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, elf64

SYSTEMS = [
    *((name, 1) for name in at_hand("linux-amd64", "linux-arm64", "linux-riscv64")),
    *((name, 2) for name in at_hand("linux-arm64", "linux-riscv64")),
]
# int3, brk #0 or ebreak, and a jump to itself, which is never reached.
BREAKPOINT = {
    "amd64": (EM_X86_64, bytes.fromhex("cc ebfe")),
    "arm64": (EM_AARCH64, struct.pack("<II", 0xD420_0000, 0x1400_0000)),
    "riscv64": (EM_RISCV, struct.pack("<II", 0x0010_0073, 0x0000_006F)),
}
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
/bin/breakpoint
echo ended: $?
i=0; while [ $i -lt 200 ]; do i=$((i+1)); (true) & done; wait; echo all $i ended
for i in 1 2 3; do ls / | sort | head -2; done
sleep 0.2
grep -c processor /proc/cpuinfo
reboot -f
"""
# The host's time stamp counter would be seen in the kernel's messages, and so would be where the program's stack is.
APPEND = {
    "amd64": "console=ttyS0 norandmaps noapic nolapic clearcpuid=tsc,tsc_deadline_timer",
    "arm64": "console=ttyAMA0 norandmaps",
    "riscv64": "console=ttyS0 norandmaps",
}
PROGRAM = r"""
fbt::*page_fault*:entry, fbt::*mem_abort*:entry, fbt::handle_mm_fault:,
fbt::*timer_interrupt*:entry, fbt::hrtimer_interrupt:entry, fbt::update_process_times:,
fbt::__schedule:, fbt::finish_task_switch*:, fbt::schedule_tail:entry, fbt::__switch_to:entry,
fbt::do_syscall_64:, fbt::el0_svc:, fbt::do_trap_ecall_u:, fbt::irqentry_*:, fbt::exit_to_user_mode*:,
fbt::do_trap_break:, fbt::exc_int3:, fbt::do_el0_brk*:, fbt::force_sig_fault*:, fbt::copy_thread:, fbt::flush_tlb*:entry
{ self->hits++; @hits[probefunc] = count(); @stacks[stack()] = count(); @users[ustack(3), execname] = count(); }
kinst::__schedule:, kinst::handle_mm_fault:, kinst::entry_SYSCALL_64:, kinst::asm_exc_page_fault:,
kinst::asm_common_interrupt:, kinst::error_entry:, kinst::el0t_64_sync:, kinst::el1h_64_irq:, kinst::ret_to_user:,
kinst::handle_exception:, kinst::ret_from_exception: { @inside[probefunc] = count(); }
END { printa("inside %s %@d\n", @inside);
    trunc(@hits); trunc(@inside); trunc(@stacks); trunc(@users); }
"""


@pytest.mark.long
@pytest.mark.parametrize(("name", "cpus"), SYSTEMS)
def test_probes_on_the_ways_in_and_out_change_nothing(name: str, cpus: int, tmp_path: Path) -> None:
    machine = name.rpartition("-")[2]
    number, code = BREAKPOINT[machine]
    program = elf64(number, 0x40_0000, [Part(".text", 0x40_0000, code, 5)])
    initrd = tmp_path / "initrd"
    initrd.write_bytes(initial_file_system(machine, INIT, [Entry("bin/breakpoint", FILE, program)]))
    words = ["--append", APPEND[machine], "--cpus", str(cpus)]

    _, plain = run_linux(name, initrd, more=words)
    text, probed = run_linux(name, initrd, [PROGRAM], more=["-Z", *words])

    assert "ended: 133\n" in plain  # 128 + SIGTRAP
    assert "all 200 ended\n" in plain
    assert f"\n{cpus}\n" in plain
    # Threads of the kernel print when they get to run, and a probe moves an interrupt by some instructions.
    assert Counter(probed.splitlines()) == Counter(plain.splitlines())
    inside = dict(re.findall(r"^inside (\S+) (\d+)$", text, re.MULTILINE))
    assert int(inside["__schedule"]) > 10_000
    assert int(inside["handle_mm_fault"]) > 10_000
