"""mem: what its probes see of drawn accesses, beside Unicorn's own hooks of memory and of every instruction.

What is not aligned is split by the engine, as `pieces` says: docs/limits.md has the rule.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import unicorn
from click.testing import CliRunner

from kinst.rewriter.assemble import assemble
from kinst.runtime.cli import run
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.calling.function_call import FunctionCall, set_c_registers
from kinst.runtime.machine.calling.loading import load_for_call
from kinst.runtime.machine.calling.template import parse_call
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.system import System
from kinst.runtime.providers.mem import MemProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.host.machine_host import MachineHost
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.c_types import NoImageTypes
from kinst.targets.image import open_to_run
from kinst.targets.machines.registry import default_machine, machine_facts
from kinst.targets.probe import parse_probe_name
from tests.runtime.machine.riscv_words import A0, A1, A2, RA, T1, ZERO, addi, code, jalr, la, load, store
from tests.runtime.providers.traced import sample
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

TEXT, AREA, PAGE = 0x8000_0000, 0x8001_0000, 0x1000
MIDDLE = AREA + PAGE  # accesses are drawn around it, on two pages
WATCHED = range(MIDDLE - 20, MIDDLE + 13)
REACH = 56
DRAWN = 60
Draw = random.Random


def amd64(draw: Draw) -> bytes:
    def at(step: int = 1) -> str:
        return f"[rdi + {draw.randrange(-REACH, REACH) // step * step}]"

    def block(step: int, text: str) -> str:
        return f"lea rsi, {at()}; lea r8, [rdi]; lea rdi, {at(step)}; mov ecx, 5; {text}; mov rdi, r8"

    choices: Sequence[Callable[[], str]] = (
        *(partial(lambda name: f"mov {name}, {at()}", name) for name in ("rax", "edx", "cx", "bl")),
        *(partial(lambda name: f"mov {at()}, {name}", name) for name in ("rax", "edx", "cx", "bl")),
        lambda: f"add dword ptr {at(4)}, 0x1234",
        lambda: f"lock xadd qword ptr {at(8)}, rax",
        lambda: f"lock cmpxchg dword ptr {at(4)}, edx",
        lambda: f"xchg qword ptr {at(8)}, rdx",
        lambda: f"lock inc word ptr {at(2)}",
        lambda: f"movdqu xmm0, {at(8)}",
        lambda: f"movdqu {at(8)}, xmm0",
        lambda: f"movzx eax, word ptr {at()}",
        lambda: block(1, "rep movsb"),
        lambda: block(8, "rep stosq"),
        lambda: block(4, "rep stosd"),
        lambda: block(1, "lodsb"),
    )
    lines = ["push rbx", f"mov edi, {MIDDLE:#x}", *(draw.choice(choices)() for _ in range(DRAWN)), "pop rbx", "ret"]
    return assemble(AMD64, "; ".join(lines), TEXT, is_plain=True)


def arm64(draw: Draw) -> bytes:
    def at(step: int = 1) -> str:
        return f"#{draw.randrange(-REACH, REACH) // step * step}"

    choices: Sequence[Callable[[], str]] = (
        *(
            partial(lambda name: f"{name}, [x0, {at()}]", name)
            for name in ("ldur x1", "ldur w2", "ldurh w3", "ldurb w4")
        ),
        *(
            partial(lambda name: f"{name}, [x0, {at()}]", name)
            for name in ("stur x1", "stur w2", "sturh w3", "sturb w4")
        ),
        lambda: f"ldp x1, x2, [x0, {at(8)}]",
        lambda: f"stp x2, x1, [x0, {at(8)}]",
        lambda: f"stp w1, w3, [x0, {at(4)}]",
        lambda: f"ldur q0, [x0, {at(8)}]",
        lambda: f"stur q0, [x0, {at(8)}]",
        lambda: f"add x9, x0, {at(8)}; ldxr x1, [x9]; stxr w5, x1, [x9]",
        lambda: f"add x9, x0, {at(4)}; ldar w1, [x9]; stlr w2, [x9]",
        lambda: f"add x9, x0, {at(16)}; st1 {{v0.16b}}, [x9]; ld1 {{v1.16b}}, [x9]",
        lambda: f"mov x9, x0; str x1, [x9, {at(8)}]!; ldrb w2, [x9], #3",
    )
    place = f"movz x0, #{MIDDLE & 0xFFFF:#x}; movk x0, #{MIDDLE >> 16:#x}, lsl #16"
    lines = [place, *(draw.choice(choices)() for _ in range(DRAWN)), "ret"]
    text = "; ".join(lines).replace("add x9, x0, #-", "sub x9, x0, #")
    return assemble(ARM64, text, TEXT)


def riscv64(draw: Draw) -> bytes:
    def atomic(funct: int, size: int, source: int = A2) -> int:  # funct5, aq and rl clear
        return funct << 27 | source << 20 | A1 << 15 | size << 12 | T1 << 7 | 0x2F

    def one() -> tuple[int, ...]:
        size, offset = draw.randrange(4), draw.randrange(-REACH, REACH)
        aligned = addi(A1, A0, offset & -8)
        return draw.choice(
            (
                (load(T1, A0, offset, size=size),),
                (store(T1, A0, offset, size=size),),
                (load(T1, A0, offset & -1 << size, size=size),),
                (store(T1, A0, offset & -1 << size, size=size),),
                (aligned, atomic(draw.choice((0, 1, 4, 8, 12)), draw.choice((2, 3)))),
                (aligned, atomic(2, 3, ZERO), atomic(3, 3)),
            )
        )

    words = [word for _ in range(DRAWN) for word in one()]
    return code(*la(A0, MIDDLE), *words, jalr(ZERO, RA, 0))


MACHINES = {"amd64": (EM_X86_64, amd64), "arm64": (EM_AARCH64, arm64), "riscv64": (EM_RISCV, riscv64)}


@dataclass(frozen=True, slots=True)
class Seen:
    """An access, at an instruction."""

    is_write: bool
    address: int
    size: int
    value: int | None  # None: not compared
    pc: int


def pieces(seen: Seen) -> list[Seen]:
    """What the engine makes of an access: a store that is not aligned is one of each byte, a load the two aligned ones
    around it."""
    if not seen.address % seen.size:
        return [seen]
    if seen.is_write:
        assert seen.value is not None
        content = (seen.value & (1 << 8 * seen.size) - 1).to_bytes(seen.size, "little")
        return [Seen(True, seen.address + at, 1, byte, seen.pc) for at, byte in enumerate(content)]  # noqa: FBT003
    first = seen.address & -seen.size
    return [Seen(False, first + at, seen.size, None, seen.pc) for at in (0, seen.size)]  # noqa: FBT003


class Called:
    """A function of drawn accesses in a machine."""

    def __init__(self, arch: str, text: bytes, folder: Path) -> None:
        path = folder / "drawn.elf"
        machine, _ = MACHINES[arch]
        parts = [Part(".text", TEXT, text, 5), Part(".data", AREA, bytes(range(256)) * 32, 6)]
        path.write_bytes(elf64(machine, TEXT, parts, [Symbol("f", TEXT, len(text)), Symbol("area", AREA, 2 * PAGE)]))
        image = open_to_run(path)
        facts = machine_facts(default_machine(arch))
        self.system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
        self.loaded = load_for_call(image, self.system)
        self.start = self.loaded.physical(AREA) or 0

    def run(self) -> bytes:
        """What memory has in the end."""
        set_c_registers(self.system, self.loaded)
        call = FunctionCall(self.system, parse_call("f()"), TEXT)
        assert self.system.run(hooks=MachineHooks(event=call.handle)) is End.RETURNED
        return self.system.memory.read(self.start, 2 * PAGE)


def by_hooks(called: Called) -> tuple[list[Seen], bytes]:
    """The oracle: Unicorn's hooks, at every instruction and at every access."""
    seen, pc, start = list[Seen](), [0], called.start

    def at_code(_uc: Any, address: int, _size: int, _data: Any) -> None:
        pc[0] = address

    def accessed(_uc: Any, kind: int, address: int, size: int, value: int, _data: Any) -> None:
        is_write = kind == unicorn.UC_MEM_WRITE
        if not start <= address < start + 2 * PAGE:  # Unicorn gives the physical address
            return
        if not is_write:
            value = int.from_bytes(called.system.memory.read(address, size), "little")
        seen.append(Seen(is_write, address - start + AREA, size, value & (1 << 8 * size) - 1, pc[0]))

    uc = called.system.engine.ql.uc
    uc.hook_add(unicorn.UC_HOOK_CODE, at_code)
    uc.hook_add(unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE, accessed)
    return seen, called.run()


def by_probes(called: Called, kinds: str = "") -> tuple[list[Seen], bytes]:
    seen = list[Seen]()

    def note(firing: Firing) -> None:
        address, value, size, pc, _ = (firing.argument(index) for index in range(5))
        is_write = str(providers.probe(firing.enabling.probe)).endswith("write")
        seen.append(Seen(is_write, address, size, value, pc))

    providers = Providers([MemProvider(MachineHost(called.system, called.loaded, NoImageTypes()))])
    name = parse_probe_name(f"mem::{WATCHED.start:#x}+{len(WATCHED)}:{kinds}", providers=("mem",))
    assert providers.enable(name, note) == (1 if kinds else 2)
    return seen, called.run()


@pytest.mark.parametrize("arch", MACHINES)
@pytest.mark.parametrize("seed", range(2))
def test_drawn_accesses(arch: str, seed: int, tmp_path: Path) -> None:
    text = MACHINES[arch][1](Draw(seed))
    every, memory = by_hooks(Called(arch, text, tmp_path))
    expected = [piece for one in every for piece in pieces(one)]
    expected = [one for one in expected if one.address < WATCHED.stop and WATCHED.start < one.address + one.size]
    assert len(expected) > DRAWN // 4
    found, same = by_probes(Called(arch, text, tmp_path))
    known = [Seen(a.is_write, a.address, a.size, None if b.value is None else a.value, a.pc)
             for a, b in zip(found, expected, strict=False)]  # fmt: skip
    assert known == expected[: len(known)]
    assert len(found) == len(expected)
    assert same == memory
    stores, same = by_probes(Called(arch, text, tmp_path), "write")
    assert stores == [one for one in found if one.is_write]
    assert same == memory


@pytest.mark.parametrize("arch", MACHINES)
def test_a_variable_of_the_kernel(arch: str, tmp_path: Path) -> None:
    """20 ticks of the clock, as the kernel itself says, each a store of one more."""
    program = "mem::hard_ticks:write /arg1 == arg4 + 1/ { @[func(arg3), arg2] = count(); }"
    words = ["-q", "--clock", "icount", "--console", str(tmp_path / "console"), "-n", program, str(sample(arch))]
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [f"kernel-{arch}`clock_tick", "4", "20"]
    assert "clock: 20 ticks" in (tmp_path / "console").read_text()


@pytest.mark.parametrize("name", ["mem::no_such_thing:write", "mem:::write", "mem::0xdead00000000:read", "mem::a*:"])
def test_what_is_no_memory(name: str) -> None:
    words = ["-n", f"{name} {{ }}", str(sample("arm64"))]
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert result.exit_code == 1
    assert "needs a variable of the image or addresses of RAM in its third field" in result.stderr
