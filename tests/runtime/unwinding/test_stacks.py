"""Stacks: whole runs against a shadow stack kept by raw Unicorn; the rules against call frame information; the ends of
walks, user code and callers on frames made by hand."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.program import Program
from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.clauses.environment import Memory
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.host.contract import blank_firing
from kinst.runtime.trap.trap import Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.frame_rules import FrameRules
from kinst.runtime.unwinding.stacks import MachineStacks
from kinst.runtime.unwinding.unwind import Unwinder
from kinst.targets.image import Image
from kinst.targets.instruction import Flow
from tests.gated import long_where
from tests.runtime.unwinding.memories import NoMemory, SystemMemory, Words
from tests.runtime.unwinding.shadow import ShadowStack
from tests.system.cases import BY_NAME, Case
from tests.system.runs import let_go
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

MACHINES = ("amd64", "arm64", "riscv64")


@cache
def program_of(name: str) -> Program:
    return open_source(Source(BY_NAME[name].path)).program


def trace_of(case: Case) -> Trace:
    with open_image(case.path) as image:
        return image.trace(machine=Machine(board=case.machine, clock="icount"))


def rules_of(program: Program, bias: int = 0) -> FrameRules:
    return FrameRules(program.image.facts, lambda: program, lambda address: address - bias)


def watched(name: str, every: int) -> Counter[str]:
    """How the stacks of a run compare with the shadow's."""
    case, program = BY_NAME[name], program_of(name)
    trace = trace_of(case)
    guest = trace.guest
    system, found = guest.system, Counter[str]()
    stacks = MachineStacks(system.arch, SystemMemory(system), rules_of(program, guest.loaded.bias))
    firing = system.trap.firing

    def look(address: int, callers: list[int]) -> None:
        system.engine.frame.read()
        firing.site = address
        got, expected = stacks.stack(firing, 64), (address, *callers)
        if got[: len(expected)] != expected:
            found[f"{address:#x}: {[hex(one) for one in got]}, not {[hex(one) for one in expected]}"] += 1
            return
        found["right"] += 1
        # Below is what was interrupted, or code that jumped here and left its return address in the link register.
        found["longer"] += len(got) > len(expected) + 1
        assert stacks.depth(firing) == len(got)
        assert not callers or stacks.caller(firing) == callers[0]

    shadow = ShadowStack(guest, program, every, look)
    let_go(trace, case.until, case.asks)
    assert shadow.error is None, shadow.error
    return found


@pytest.mark.parametrize("machine", MACHINES)
def test_every_stack_of_a_run_is_the_shadows(machine: str) -> None:
    found = watched(f"kernel-{machine}", 40)
    right, longer = found.pop("right"), found.pop("longer")
    assert not found
    assert right > 8000
    assert longer < right // 20  # the handlers of interrupts


@pytest.mark.parametrize(
    "name",
    long_where(["kernel-amd64", "kernel-arm64", "kernel-riscv64", "gnumach"], lambda name: name == "gnumach"),
)
def test_the_code_says_what_call_frame_information_says(name: str) -> None:
    """The frame that following the code gives is the compiler's, but where inline assembly moves the stack pointer, and
    in tails that only calls that never return seem to lead to."""
    program = program_of(name)
    arch = program.image.facts
    unwinder = Unwinder(arch, stack_effects(arch), lambda: program)
    agree = differ = 0
    for row in range(len(program.functions)):
        start = int(program.functions.address[row])
        for address, frame in unwinder._frames_of(start).items():
            described = unwinder._call_frames.row_at(address)
            rule = (
                unwinder._rule_of_row(described) if described is not None and unwinder._gives_frame(described) else None
            )
            if rule is None or frame.is_guess:
                continue
            same = {arch.stack_pointer: frame.sp, arch.frame_pointer: frame.fp}.get(rule.base) == rule.offset
            agree, differ = agree + same, differ + (not same)
    assert agree > 2000
    assert differ * 1000 <= agree * 3


# -- frames made by hand ----------------------------------------------------------------------------------------------


def stacks_at(
    name: str, memory: Memory, *, is_user: Callable[[Firing], bool] = lambda _firing: False
) -> tuple[MachineStacks, Image]:
    program = program_of(name)
    return MachineStacks(program.image.facts, memory, rules_of(program), is_user=is_user), program.image


def firing_at(image: Image, site: int, **registers: int) -> Firing:
    regs = [registers.get(name, 0) for name in image.facts.registers]
    firing = blank_firing(TrapFrame(regs, lambda _a, _s: 0, lambda _a, _s, _v: None, lambda _n, _v: None), 0, 0)
    firing.site = site
    return firing


def start_of(name: str, function: str) -> int:
    functions = program_of(name).functions
    return int(functions.address[functions.names.index(function)])


def call_to(name: str, function: str) -> int:
    """The address behind a call of the function, wherever that is."""
    program, target = program_of(name), start_of(name, function)
    for row in range(len(program.functions)):
        start, size = int(program.functions.address[row]), int(program.functions.size[row])
        code = program.image.read(start, size)
        found = program.dissector.dissect(np.frombuffer(code, np.uint8), start, np.array([[0, size]], np.int64))
        calls = np.flatnonzero((found.target == target) & (found.flow == Flow.CALL))
        if len(calls):
            return int(found.address[calls[0]]) + int(found.size[calls[0]])
    raise LookupError(function)


@pytest.mark.parametrize(
    ("name", "registers", "words"),
    [
        ("kernel-amd64", {"rsp": 0x1000}, {0x1000: "caller"}),
        ("kernel-arm64", {"sp": 0x1000, "x30": "caller"}, {}),
        ("kernel-riscv64", {"sp": 0x1000, "ra": "caller"}, {}),
    ],
)
def test_at_entry_the_caller_is_exact(name: str, registers: dict[str, int | str], words: dict[int, str]) -> None:
    behind, outside = call_to(name, "printk"), 0x1234_5678
    for caller, expected in ((behind, (behind,)), (outside, ())):  # from outside the image there is a caller, no frame
        memory = Words(dict.fromkeys(words, caller))
        stacks, image = stacks_at(name, memory)
        known = {key: caller if isinstance(value, str) else value for key, value in registers.items()}
        firing = firing_at(image, start_of(name, "printk"), **known)
        assert stacks.caller(firing) == caller
        assert stacks.stack(firing, 2) == (firing.site, *expected)


@pytest.mark.parametrize("frames", [0, 1])
def test_no_more_frames_than_asked_for(frames: int) -> None:
    stacks, image = stacks_at("kernel-riscv64", NoMemory())
    firing = firing_at(image, start_of("kernel-riscv64", "printk"), sp=0x1000, ra=call_to("kernel-riscv64", "printk"))
    assert len(stacks.stack(firing, frames)) == frames
    assert len(stacks.stack(firing, 2)) == 2


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_that_is_not_there_ends_the_walk(machine: str) -> None:
    name = f"kernel-{machine}"
    stacks, image = stacks_at(name, NoMemory())
    site = call_to(name, "put_formatted")  # in the middle of printk
    firing = firing_at(image, site, rsp=0x1000, sp=0x1000, rbp=0x1100, x29=0x1000, s0=0x1100)
    assert stacks.stack(firing, 20) == (site,)
    assert (stacks.depth(firing), stacks.caller(firing)) == (1, 0)


def test_a_return_address_that_no_call_left_ends_the_walk() -> None:
    """Where only the code tells the frame, the word that should be a return address must follow a call."""
    name = "opensbi-1.6"  # without any debug information
    program = program_of(name)
    stacks, image = stacks_at(name, NoMemory())
    unwinder = Unwinder(image.facts, stack_effects(image.facts), lambda: program)
    leaf, behind = next(
        (address, frame)
        for row in range(20, len(program.functions))
        for address, frame in unwinder._frames_of(int(program.functions.address[row])).items()
        if frame.returns == "link" and frame.sp == 0 and not unwinder.is_start(address)
    )
    assert behind.returns == "link"
    addresses = [address for row in range(200) if (address := int(program.functions.address[row]))]
    returns = [address for address in addresses if unwinder.follows_call(address)]
    wild = next(address for address in addresses if not unwinder.follows_call(address))
    assert stacks.stack(firing_at(image, leaf, sp=0x1000, ra=wild), 5) == (leaf,)
    assert all(stacks.stack(firing_at(image, leaf, sp=0x1000, ra=good), 2) == (leaf, good) for good in returns[:3])


# outer:   call aside; ret
# aside:   push rbx; mov [r11], rsp; mov rsp, r11; call leaf; call leaf; pop rsp; pop rbx; ret
OTHER_STACK = {
    "outer": (0x401000, "e80b000000 c3"),
    "aside": (0x401010, "53 498923 4c89dc e814000000 e80f000000 5c 5b c3"),
    "leaf": (0x401030, "c3"),
}


@pytest.mark.parametrize("call", [0x40101C, 0x401021])
def test_a_call_on_another_stack_comes_back_to_its_own(tmp_path: Path, call: int) -> None:
    content = bytearray(0x40)
    for address, code in OTHER_STACK.values():
        content[address - 0x401000 : address - 0x401000 + len(bytes.fromhex(code))] = bytes.fromhex(code)
    symbols = [Symbol(name, at, len(bytes.fromhex(code))) for name, (at, code) in OTHER_STACK.items()]
    path = tmp_path / "image.elf"
    path.write_bytes(elf64(EM_X86_64, 0x401000, [Part(".text", 0x401000, bytes(content), 5)], symbols))
    program = open_source(Source(path)).program
    other, own = 0x9000, 0x5000
    words = {other - 8: call, other: own, own: 0, own + 8: 0x401005, own + 16: 0}
    stacks = MachineStacks(program.image.facts, Words(words), rules_of(program))
    firing = firing_at(program.image, 0x401030, rsp=other - 8)
    assert stacks.stack(firing, 9) == (0x401030, call, 0x401005)
    assert stacks.reach(firing) == other  # one stack, for what tells stacks apart

    interrupted = [0] * len(program.image.facts.registers)
    interrupted[program.image.facts.pc], interrupted[program.image.facts.stack_pointer] = 0x401030, other - 8
    stacks.cross(lambda sp: interrupted if sp == own + 16 else None)
    assert stacks.stack(firing, 9) == (0x401030, call, 0x401005, *(0x401030, call, 0x401005) * 2)
    assert stacks.stack(firing, 4) == (0x401030, call, 0x401005, 0x401030)
    assert stacks.reach(firing) == other


def test_code_outside_the_image_has_no_callers() -> None:
    stacks, image = stacks_at("kernel-arm64", NoMemory())
    assert stacks.stack(firing_at(image, 0x1234, sp=0x1000, x30=call_to("kernel-arm64", "printk")), 5) == (0x1234,)


def test_a_signed_return_address_is_shown_plain() -> None:
    name = "kernel-arm64"
    stacks, image = stacks_at(name, NoMemory())
    caller = call_to(name, "printk")
    firing = firing_at(image, start_of(name, "printk"), sp=0x1000, x30=caller | 0x0017 << 48)
    assert stacks.stack(firing, 2)[1:] == (caller,)
