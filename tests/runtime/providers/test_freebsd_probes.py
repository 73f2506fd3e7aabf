"""FreeBSD's kind of static probes, both forms, in a program of a few lines on the bare RISC-V machine."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kinst.runtime.patched.call_blocks import no_blocks
from kinst.runtime.patched.static_gates import gated
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.arch.registry import NAMES, arch_by_name
from kinst.targets.image import open_image
from kinst.targets.probe import ProbeName
from kinst.targets.sdt_sets import sdt_records
from kinst.targets.static_probes import PlaceKind, StaticPlace, StaticProbe
from tests.runtime.providers.hosts import firing_of
from tests.runtime.providers.traced import Traced, names_of, traced
from tests.samples.machines import missing

COMPILER = "riscv64-linux-gnu-gcc"

START = r"""
.section .text.head, "ax"
.globl _start
_start: la sp, stack + 4096
        call main
        li t0, 0x100000
        li t1, 0x5555
        sw t1, 0(t0)
1:      j 1b
.bss
.balign 16
stack:  .space 4096
"""

COMMON = r"""
typedef unsigned long u64;
struct provider { const char *name; void *entry[2]; u64 id; int refs; };
struct probe {
    int version; struct provider *prov; void *entry[2]; void *types[2];
#if FORM == 15
    void *tracepoints[2];
#endif
    const char *mod, *func, *name; volatile int id; int n_args; void *file;
};
struct argtype { int ndx; const char *type, *xtype; void *entry[2]; struct probe *probe; };
struct tracepoint { struct probe *probe; u64 nop, target; void *next; };
#define SET(set, symbol) static void *const set##_##symbol __attribute__((section("set_" #set), used)) = &symbol
#define PROBE(prov, mod, func, name) \
    struct probe prov##_##name = {sizeof(struct probe), &prov, {0}, {0}, FORM15({0}) #mod, #func, #name, 0, 0, 0}; \
    SET(sdt_probes_set, prov##_##name)
#define TYPE(probe, ndx, type, xtype) \
    static struct argtype probe##ndx = {ndx, type, xtype, {0}, &probe}; SET(sdt_argtypes_set, probe##ndx)

struct provider vfs = {"vfs"}, net = {"net"};
PROBE(vfs, , vn_open, open__entry); TYPE(vfs_open__entry, 1, "int", 0); TYPE(vfs_open__entry, 0, "struct vnode *", 0);
PROBE(net, tcp, , send); TYPE(net_send, 0, "struct mbuf *", "pktinfo_t *");
PROBE(net, , , never);
volatile int calls, rounds;

static void __attribute__((noinline)) work(u64 i)
{
    CALL(vfs_open__entry, i, -i, i * 2, i * 3, i * 4);
    if (i & 1)
        CALL(net_send, 0x1000 + i, 7, 0, 0, 0);
    rounds++;
}

int main(void)
{
    for (u64 i = 0; i < 5; i++)
        work(i);
    return 0;
}
"""

FORMS = {
    14: r"""
#define FORM 14
#define FORM15(x)
void __attribute__((noinline)) sdt_probe_stub(unsigned id, unsigned long a, unsigned long b, unsigned long c,
                                              unsigned long d, unsigned long e)
{ extern volatile int calls; calls += id + a + b + c + d + e + 1; }
void (*volatile sdt_probe_func)(unsigned, unsigned long, unsigned long, unsigned long, unsigned long, unsigned long)
    = sdt_probe_stub;
volatile _Bool sdt_probes_enabled;
#define CALL(probe, a, b, c, d, e) \
    do { if (sdt_probes_enabled && probe.id) sdt_probe_func(probe.id, a, b, c, d, e); } while (0)
""",
    15: r"""
#define FORM 15
#define FORM15(x) x,
void __attribute__((noinline)) sdt_probe(unsigned id, unsigned long a, unsigned long b, unsigned long c,
                                         unsigned long d, unsigned long e)
{ extern volatile int calls; calls += id + a + b + c + d + e + 1; }
#define CALL(probe, a, b, c, d, e) do { __label__ on; \
    asm goto(".option push\n.option norvc\n1: nop\n.option pop\n" \
             ".pushsection .data\n.balign 8\n2: .8byte %0, 1b, %l1, 0\n.popsection\n" \
             ".pushsection set_sdt_tracepoint_set, \"aw\"\n.8byte 2b\n.popsection" : : "i"(&probe) : : on); \
    if (0) { on: sdt_probe(probe.id, a, b, c, d, e); } } while (0)
""",
}


@pytest.fixture
def build(tmp_path: Path) -> Callable[[int], Path]:
    reason = missing(COMPILER)
    if reason:
        pytest.skip(reason)

    def compiled(form: int) -> Path:
        (tmp_path / "start.S").write_text(START)
        (tmp_path / "program.c").write_text(FORMS[form] + COMMON)
        flags = (
            "-O2 -march=rv64imac_zicsr -mabi=lp64 -mcmodel=medany -msmall-data-limit=0 -ffreestanding -nostdlib -static"
        )
        link = "-no-pie -fno-pie -Wl,--build-id=none -Wl,-Ttext-segment=0x80000000 -Wl,--no-warn-rwx-segments"
        command = [COMPILER, *flags.split(), *link.split(), "start.S", "program.c", "-o", "bsd.elf"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return tmp_path / "bsd.elf"

    return compiled


def variable(run: Traced, name: str) -> int:
    address = run.host.address_of(name)
    assert address is not None
    physical = run.sites._patched.loaded.physical(address)
    assert physical is not None
    return run.system.memory.load(physical, 4)


@pytest.mark.parametrize("form", FORMS)
def test_records_are_read(build: Callable[[int], Path], form: int) -> None:
    records = {record.name: record for record in sdt_records(open_image(build(form)))}
    assert {name: (one.provider, one.module, one.function, one.types) for name, one in records.items()} == {
        "open__entry": ("vfs", "", "vn_open", ("struct vnode *", "int")),
        "send": ("net", "tcp", "", ("pktinfo_t *",)),
        "never": ("net", "", "", ()),
    }
    assert [len(records[name].branches) for name in ("open__entry", "send", "never")] == [form == 15, form == 15, 0]


@pytest.mark.parametrize("form", FORMS)
def test_they_fire_with_their_arguments_and_the_kernel_does_not_notice(build: Callable[[int], Path], form: int) -> None:
    run = traced(build(form), ("vfs:::", "net:::", "fbt::work:entry"))
    assert names_of(run.providers, ProbeName("vfs", "", "", "")) == ["vfs:bsd:vn_open:open-entry"]
    assert sorted(names_of(run.providers, ProbeName("net", "", "", ""))) == ["net:bsd:none:never", "net:tcp:none:send"]
    (opened,) = run.providers.described("vfs:::").tolist()
    assert run.providers.argument_types(opened) == ("struct vnode *", "int")
    seen: list[tuple[str, list[int]]] = []

    def action(firing: Firing) -> None:
        probe = run.providers.probe(firing.enabling.probe)
        assert probe is not None
        seen.append((probe.name, [firing.argument(index) for index in range(5)]))

    run.enable("vfs:::", action)
    run.enable("net:tcp::send", action)
    run.run()
    word = (1 << 64) - 1
    expected: list[tuple[str, list[int]]] = []
    for number in range(5):
        values = [number, -number & word, number * 2, number * 3, number * 4]
        expected.append(("open-entry", values))
        if number & 1:
            expected.append(("send", [0x1000 + number, 7, 0, 0, 0]))
    assert seen == expected
    assert variable(run, "calls") == 0  # the function that probes call has returned at once
    assert variable(run, "rounds") == 5


@pytest.mark.parametrize("form", FORMS)
def test_only_what_is_enabled_fires_and_memory_says_so(build: Callable[[int], Path], form: int) -> None:
    run = traced(build(form), ("sdt:::",))
    seen: list[str] = []
    run.enable("net:tcp::send", lambda firing: seen.append(str(run.providers.probe(firing.enabling.probe))))
    run.arm()
    text = run.host.image.code_regions[0]
    pristine = run.host.image.read(text.address, text.size)
    assert run.system.memory.read(text.address, text.size) != pristine
    assert [variable(run, name) for name in ("vfs_open__entry", "net_send")]  # they are in memory
    send = next(record for record in sdt_records(run.host.image) if record.name == "send")
    opened = next(record for record in sdt_records(run.host.image) if record.name == "open__entry")
    assert run.system.memory.load(send.id_word, 4) == run.providers.enabled[0]
    assert run.system.memory.load(opened.id_word, 4) == 0
    run.run()
    assert seen == ["net:tcp:none:send"] * 2
    run.providers.disable(run.providers.enabled)
    run.arm()
    assert run.system.memory.load(send.id_word, 4) == 0
    assert run.system.memory.read(text.address, text.size) == pristine
    if form == 14:
        assert variable(run, "sdt_probes_enabled") & 0xFF == 0


def test_without_probes_nothing_is_called(build: Callable[[int], Path]) -> None:
    run = traced(build(14), ("fbt::work:entry",))
    run.run()
    assert (variable(run, "calls"), variable(run, "rounds")) == (0, 5)


# -- the emulations, on every machine -----------------------------------------------------------------------------


def emulation_at(arch: str, place: StaticPlace, address: int) -> Emulation:
    probe = StaticProbe("p", "", "f", "n", (place,), id_word=8)
    enabling = Enabling(7, lambda _firing: None, lambda _firing, _index: 0, 0)
    emulation = gated(arch_by_name(arch), address, 5, [(probe, enabling)], no_blocks)[1]
    assert emulation is not None
    return emulation


@pytest.mark.parametrize("arch", NAMES)
def test_a_branch_goes_as_far_in_a_copy_of_the_code(arch: str) -> None:
    facts = arch_by_name(arch)
    emulation = emulation_at(arch, StaticPlace(0x1000, (), PlaceKind.BRANCH, 0x0F00), 0x1000)
    for pc, target in ((0x1000, 0x0F00), (0x8000_1000, 0x8000_0F00)):
        regs = [0] * len(facts.registers)
        regs[facts.pc] = pc
        firing = firing_of(*regs)
        emulation.run(firing.frame)
        assert firing.regs[facts.pc] == target


@pytest.mark.parametrize("arch", NAMES)
def test_the_called_function_returns_at_once(arch: str) -> None:
    facts = arch_by_name(arch)
    emulation = emulation_at(arch, StaticPlace(0x1000, (), PlaceKind.CALL), 0x1004)  # behind a landing pad
    regs = [0] * len(facts.registers)
    regs[facts.pc], regs[facts.stack_pointer] = 0x1004, 0x5000
    if facts.link_register is not None:
        regs[facts.link_register] = 0x2222
    firing = firing_of(*regs)
    firing.frame.load = lambda address, size: {(0x5000, 8): 0x2222}[address, size]
    emulation.run(firing.frame)
    assert firing.regs[facts.pc] == 0x2222
    assert firing.regs[facts.stack_pointer] == (0x5008 if facts.link_register is None else 0x5000)
    assert (facts.stack_pointer in emulation.writes) == (facts.link_register is None)
