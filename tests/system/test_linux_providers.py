"""What Linux' providers tell, beside the kernel's own figures in /proc and what busybox's programs print.

Each figure is printed when the kernel begins to write the file that has its own.
"""

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, real_image
from tests.linux_programs import initial_file_system
from tests.runtime.attached.programs import COMPILERS
from tests.system.linux_runs import run_linux
from tests.writers.cpio import FILE, Entry

KERNELS = ("linux-amd64", "linux-6.12-amd64", "linux-arm64", "linux-6.12-arm64", "linux-riscv64", "linux-7-riscv64")
each_kernel = pytest.mark.parametrize("name", at_hand(*KERNELS))
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
dd if=/dev/zero of=/tmp/x bs=1k count=64
i=0; while [ $i -lt 20 ]; do i=$((i + 1)); (true) & done; wait
ip link set lo up
/faulty
(echo hello | nc -l -p 4000 > /tmp/got) & sleep 0.5
echo world | nc -w 2 127.0.0.1 4000
nc -w 1 127.0.0.1 4001 < /dev/null
nslookup -timeout=1 -retry=1 example.org 127.0.0.1 > /tmp/answer 2>&1
ping -c 2 127.0.0.1
cat /proc/vmstat
grep -E '^(ctxt|processes)' /proc/stat
grep ctxt /proc/1/status
cat /proc/net/snmp
reboot -f
"""
PROGRAM = r"""
vminfo::: { @vm[probename] = sum(arg0); }
fbt::vmstat_start:entry { printa("vm %s %@d\n", @vm); }
sysinfo::: { @sys[probename] = sum(arg0); }
sysinfo:::readch, sysinfo:::writech /execname == "dd"/ { @bytes[probename] = sum(arg0); }
fbt::show_stat:entry { printa("sys %s %@d\n", @sys); }
sched:::sleep, sched:::preempt /tid == 1/ { @init[probename] = count(); }
fbt::proc_pid_status:entry { printa("init %s %@d\n", @init); }
BEGIN { started = 0; }
proc:::create { born[args[0]->pr_pid] = 1; born_all++; }
proc:::start { started = started + born[pid]; born[pid] = 0; }
proc:::fault { printf("fault %s %d %d %x\n", execname, args[0], args[1]->si_signo, args[1]->si_addr); }
sched:::change-pri /execname == "faulty"/ { printf("pri %s %d\n", args[1]->pr_fname, args[2]); }
sched:::tick { @ticks = count(); }
lockstat:::*-acquire { @took[probename] = count(); }
lockstat:::*-release { @gave[probename] = count(); }
ip:::send, ip:::receive { @ip[probename] = count(); }
ip:::send { @to[args[2]->ip_saddr, args[2]->ip_daddr, args[3]->if_name, args[4]->ipv4_ttl] = count(); }
tcp::: { @tcp[probename] = count(); }
tcp:::receive { @state[tcp_state_string[args[3]->tcps_state]] = count(); }
tcp:::accept-established, tcp:::connect-established
{
    printf("%s %s %d %s %d %s\n", probename, args[3]->tcps_laddr, args[3]->tcps_lport, args[3]->tcps_raddr,
        args[4]->tcp_dport == args[3]->tcps_lport, tcp_state_string[args[3]->tcps_state]);
}
tcp:::send { @payload[args[3]->tcps_lport == 4000] = sum(args[2]->ip_plength - args[4]->tcp_offset); }
profile-199 /pid > 1/ { @both[stack(2), ustack(2)] = count(); samples++; }
END { printa("%k%kprofile %@d\n", @both); printf("samples %d\n", samples); trunc(@both); }
tcp:::state-change
{
    @changes[tcp_state_string[args[5]->tcps_state], tcp_state_string[args[3]->tcps_state]] = count();
}
udp:::send, udp:::receive { @udp[probename, args[4]->udp_dport, args[4]->udp_length] = count(); }
fbt::snmp_seq_show:entry
{
    printa("ip %s %@d\n", @ip);
    printa("to %s %s %s %d %@d\n", @to);
    printa("tcp %s %@d\n", @tcp);
    printa("state %s %@d\n", @state);
    printa("payload %d %@d\n", @payload);
    printa("change %s %s %@d\n", @changes);
    printa("udp %s %d %d %@d\n", @udp);
    printa("took %s %@d\n", @took);
    printa("gave %s %@d\n", @gave);
    printa("bytes %s %@d\n", @bytes);
    printa("ticks %@d\n", @ticks);
    printf("born %d %d\n", born_all, started);
}
"""
TYPES = "pktinfo_t * csinfo_t * ipinfo_t * tcpsinfo_t * tcpinfo_t * tcplsinfo_t *"


def faulty_program(machine: str, folder: Path) -> bytes:
    output = folder / "faulty"
    options = ("-O1", "-static", "-nostdlib", "-ffreestanding", "-Wl,--build-id=none")
    source = Path(__file__).with_name("faulty.c")
    subprocess.run([COMPILERS[machine], *options, "-o", output, source], check=True)
    return output.read_bytes()


def rows(text: str, first: str) -> dict[tuple[str, ...], int]:
    """Lines of an aggregation: its key and value."""
    found = (line.split()[1:] for line in text.splitlines() if line.startswith(f"{first} "))
    return {tuple(key): int(value) for *key, value in found}


def snmp(console: str, protocol: str) -> dict[str, int]:
    """/proc/net/snmp: two lines a protocol, names and figures."""
    names, figures = (line.split()[1:] for line in console.splitlines() if line.startswith(f"{protocol}: "))
    return dict(zip(names, map(int, figures), strict=True))


@pytest.mark.long
@each_kernel
def test_types_of_arguments(name: str) -> None:
    result = CliRunner().invoke(run, ["-lv", "-n", "tcp:::receive", str(real_image(name))])
    assert result.exit_code == 0, result.stderr
    assert " ".join(re.findall(r"args\[\d\]: (.+)", result.stdout)) == TYPES


@pytest.mark.long
@each_kernel
def test_what_is_told_is_what_the_kernel_counts(name: str, tmp_path: Path) -> None:
    machine = name.rpartition("-")[2]
    initrd = tmp_path / "initrd"
    faulty = Entry("faulty", FILE, faulty_program(machine, tmp_path))
    initrd.write_bytes(initial_file_system(machine, INIT, [faulty]))
    text, console = run_linux(name, initrd, [PROGRAM])
    _check_memory(text, console)
    _check_tasks(text, console)
    _check_locks(text)
    _check_packets(text, console)
    both, samples = map(int, re.findall(r"profile (\d+)$", text, re.M)), re.search(r"^samples (\d+)$", text, re.M)
    assert samples is not None
    assert sum(both) == int(samples[1]) > 50


def _check_memory(text: str, console: str) -> None:
    """The kernel adds its counters up each time that it goes on with the file."""
    counted: dict[str, list[int]] = {}
    for word, number in re.findall(r"^vm (\S+) (\d+)$", text, re.MULTILINE):
        counted.setdefault(word, []).append(int(number))
    said = {word: int(number) for word, number in re.findall(r"^([a-z_0-9]+) (\d+)$", console, re.MULTILINE)}
    both = {word: (min(found), said[word], max(found)) for word, found in counted.items() if word in said}
    assert {"pgfault", "pgfree", "pgreuse"} <= set(both)
    # Memory for the file itself is allocated after the probe has fired.
    far = {word: found for word, found in both.items() if not found[0] <= found[1] <= found[2] + 8 * ("alloc" in word)}
    assert not far
    assert min(counted["as_fault"]) <= said["pgfault"] <= max(counted["as_fault"])
    assert said["pgfault"] > 500


def _check_tasks(text: str, console: str) -> None:
    system = rows(text, "sys")
    said = {word: int(number) for word, number in re.findall(r"^(ctxt|processes) (\d+)$", console, re.MULTILINE)}
    assert abs(system["pswitch",] - said["ctxt"]) <= 1
    assert 0 <= said["processes"] - system["sysfork",] <= 1
    voluntary = re.search(r"^voluntary_ctxt_switches:\s+(\d+)\nnonvoluntary_ctxt_switches:\s+(\d+)$", console, re.M)
    assert voluntary is not None
    init = rows(text, "init")
    assert (init["sleep",], init["preempt",]) == tuple(map(int, voluntary.groups()))
    assert rows(text, "bytes")["readch",] == 65536
    assert "pri faulty 127\n" in text
    assert "fault faulty 6 11 10\n" in text
    born = re.search(r"^born (\d+) (\d+)$", text, re.MULTILINE)
    assert born is not None
    assert 0 <= int(born[1]) - int(born[2]) <= 1
    assert rows(text, "ticks")[()] > 100


def _check_locks(text: str) -> None:
    took = {name.partition("-")[0]: count for (name,), count in rows(text, "took").items()}
    gave = {name.partition("-")[0]: count for (name,), count in rows(text, "gave").items()}
    assert set(took) >= {"adaptive", "rw"}
    for kind, count in gave.items():
        assert kind not in took or abs(took[kind] - count) <= 10
        assert count > 1000


def _check_packets(text: str, console: str) -> None:
    ip, tcp, udp = (snmp(console, protocol) for protocol in ("Ip", "Tcp", "Udp"))
    packets, segments, datagrams = rows(text, "ip"), rows(text, "tcp"), rows(text, "udp")
    assert (packets["send",], packets["receive",]) == (ip["OutRequests"], ip["InReceives"])
    assert rows(text, "to") == {("127.0.0.1", "127.0.0.1", "lo", "64"): ip["OutRequests"]}
    assert (segments["send",], segments["receive",]) == (tcp["OutSegs"], tcp["InSegs"])
    assert segments["connect-request",] == tcp["ActiveOpens"] == 2
    assert segments["connect-established",] == segments["accept-established",] == tcp["PassiveOpens"] == 1
    assert segments["connect-refused",] == segments["accept-refused",] == tcp["OutRsts"] == tcp["AttemptFails"] == 1
    assert re.search(r"^accept-established 127.0.0.1 4000 127.0.0.1 1 state-established$", text, re.MULTILINE)
    assert re.search(r"^connect-established 127.0.0.1 \d+ 127.0.0.1 1 state-established$", text, re.MULTILINE)
    assert rows(text, "payload") == {("0",): len("world\n"), ("1",): len("hello\n")}
    states = rows(text, "state")
    assert ("state-listen",) in states
    assert states.get(("<unknown>",), 0) == 1  # what asks for a port at which nobody listens
    assert ("state-syn-sent", "state-established") in rows(text, "change")
    sent = {key: count for key, count in datagrams.items() if key[0] == "send"}
    received = {key: count for key, count in datagrams.items() if key[0] == "receive"}
    assert received == {("receive", "5000", str(8 + len("a datagram\0"))): udp["InDatagrams"]} != {}
    assert sent["send", "5000", "19"] == 1
    assert sum(sent.values()) == udp["OutDatagrams"] > 1
