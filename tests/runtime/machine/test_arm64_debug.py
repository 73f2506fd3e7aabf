"""Software steps, breakpoints and watchpoints of arm64 as a debugger's kernel has them: programs of a few lines."""

import pytest

from kinst.rewriter.assemble import assemble
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.exceptions.arm64_accesses import accessed
from kinst.runtime.machine.exceptions.arm64_debug import Watchpoint, watchpoint
from kinst.targets.arch.arm64 import ARM64
from tests.runtime.machine.test_arm64_machine import CODE, EL0, END, LOWER, VECTORS, Guest, at_code

USER, DATA = CODE + 0x200, 0x4024_0000
STEPPING = 1 << 21  # SPSR.SS
MONITOR, STEP = 1 << 15, 1 << 0  # MDSCR_EL1.MDE, SS
PENDING, STEPPED, MET, WATCHED_LOAD, WATCHED_STORE = (
    0xCA00_0022, 0xCB00_0022, 0xC200_0022, 0xD200_0022, 0xD200_0062,
)  # fmt: skip
ZVA_ALLOWED = 1 << 14  # SCTLR_EL1.DZE
BREAK, WATCH_STORES = 0x1E5, 0x1FF5  # controls for EL0


def value(register: str, number: int) -> str:
    return f"movz {register}, #{number & 0xFFFF}; movk {register}, #{number >> 16}, lsl #16"


def debugged(user: str, *, control: int, flags: int = 0, registers: str = "", cpus: int = 1) -> Guest:
    """A guest that goes to `user` in EL0 with x1 = DATA, once MDSCR_EL1 and debug registers are set."""
    guest = Guest(
        f"msr oslar_el1, xzr; {registers or 'nop'}; {value('x2', control)}; msr mdscr_el1, x2; {value('x1', DATA)}; "
        f"{at_code('x0', USER - CODE)}; msr elr_el1, x0; {value('x0', EL0 | flags)}; msr spsr_el1, x0; isb; eret",
        cpus=cpus,
    )
    guest.system.memory.write(USER, assemble(ARM64, user, USER))
    guest.set("sctlr_el1", guest.get("sctlr_el1") | ZVA_ALLOWED)
    return guest


def pair(kind: str, address: int, control: int, number: int = 0) -> str:
    """Set a pair of debug registers."""
    first = f"{value('x3', address)}; msr dbg{kind}vr{number}_el1, x3"
    return f"{first}; {value('x3', control)}; msr dbg{kind}cr{number}_el1, x3"


@pytest.mark.parametrize(
    ("user", "esr", "offset", "is_stepping"),
    [
        pytest.param("nop; nop", STEPPED, 4, False, id="one instruction"),
        pytest.param("b over; nop; over: nop", STEPPED, 8, False, id="a branch"),
        pytest.param("str x0, [x1]", STEPPED, 4, False, id="a store"),
        pytest.param("svc #3", 0x5600_0003, 4, False, id="a call is done"),
        pytest.param("brk #3", 0xF200_0003, 0, True, id="brk is not"),
        pytest.param("hlt #0", 0x0200_0000, 0, True, id="nor what is undefined"),
    ],
)
def test_a_step_ends_after_an_instruction(user: str, esr: int, offset: int, *, is_stepping: bool) -> None:
    report = debugged(user, control=STEP, flags=STEPPING).run().report()
    assert (hex(report["esr"]), report["elr"] - USER, report["vector"]) == (hex(esr), offset, LOWER)
    assert bool(report["spsr"] & STEPPING) is is_stepping


def test_a_step_without_its_bit_ends_at_once_and_ten_end_after_ten_instructions() -> None:
    report = debugged("nop; nop", control=STEP).run().report()
    assert (report["esr"], report["elr"]) == (PENDING, USER)
    guest = debugged("; ".join(["add x9, x9, #1"] * 20), control=STEP, flags=STEPPING)
    again = f"add x10, x10, #1; mrs x3, spsr_el1; {value('x4', STEPPING)}; orr x3, x3, x4; msr spsr_el1, x3; eret"
    guest.system.memory.write(VECTORS + LOWER, assemble(ARM64, f"cmp x10, #9; b.eq #32; {again}", VECTORS + LOWER))
    guest.system.memory.write(VECTORS + LOWER + 36, assemble(ARM64, f"mrs x22, elr_el1; {END}"))
    # The branch goes to the end of `again`, which is replaced by the report.
    guest.system.memory.write(VECTORS + LOWER + 4, assemble(ARM64, "b.eq #32"))
    guest.run()
    assert guest.get("x9") == guest.get("x10") + 1 == 10


def test_breakpoints_of_registers() -> None:
    user = "nop; nop; nop; nop"
    one = debugged(user, control=MONITOR, registers=pair("b", USER + 8, BREAK, 5)).run().report()
    assert (hex(one["esr"]), one["elr"] - USER) == (hex(MET), 8)
    off = debugged(f"{user}; svc #0", control=MONITOR, registers=pair("b", USER + 8, BREAK & ~1)).run().report()
    assert off["esr"] == 0x5600_0000
    disabled = debugged(f"{user}; svc #0", control=0, registers=pair("b", USER + 8, BREAK)).run().report()
    assert disabled["esr"] == 0x5600_0000


@pytest.mark.parametrize(
    ("user", "address", "control", "esr", "offset", "far"),
    [
        pytest.param("str x0, [x1]", DATA, WATCH_STORES, WATCHED_STORE, 0, 0, id="a store"),
        pytest.param("nop; ldr x0, [x1]", DATA, 0x1FED, WATCHED_LOAD, 4, 0, id="a load"),
        pytest.param("ldr x0, [x1]; str x0, [x1]", DATA, WATCH_STORES, WATCHED_STORE, 4, 0, id="stores, not loads"),
        pytest.param("strb w0, [x1, #8]; strb w0, [x1, #9]", DATA + 8, 0x055, WATCHED_STORE, 4, 9, id="one byte"),
        pytest.param("str w0, [x1, #16]; str w0, [x1, #20]", DATA + 16, 0x1E15, WATCHED_STORE, 4, 20, id="half"),
        pytest.param("str x0, [x1]; stp x0, x0, [x1, #8]", DATA + 16, WATCH_STORES, WATCHED_STORE, 4, 16, id="a pair"),
        pytest.param("str q0, [x1]", DATA + 8, WATCH_STORES, WATCHED_STORE, 0, 8, id="a vector"),
        pytest.param("str x0, [x1, #4]", DATA + 8, WATCH_STORES, WATCHED_STORE, 0, 8, id="misaligned"),
        pytest.param("dc zva, x1", DATA + 40, WATCH_STORES, WATCHED_STORE, 0, 40, id="a block of zeros"),
        pytest.param("str x0, [x1, #2048]", DATA, 12 << 24 | WATCH_STORES, WATCHED_STORE, 0, 2048, id="a page"),
    ],
)
def test_watchpoints(user: str, address: int, control: int, esr: int, offset: int, far: int) -> None:
    guest = debugged(f"mov x0, #77; {user}; svc #0", control=MONITOR, registers=pair("w", address, control))
    report = guest.run().report()
    assert (hex(report["esr"]), report["elr"] - USER - 4, report["far"]) == (hex(esr), offset, DATA + far)


def test_what_is_not_watched_is_stored() -> None:
    user = "mov x0, #7; stp x0, x0, [x1, #16]; str x0, [x1, #40]; ldr x9, [x1, #24]; ldr x10, [x1, #40]; str x0, [x1]"
    guest = debugged(user, control=MONITOR, registers=pair("w", DATA + 8, WATCH_STORES, 3)).run()
    assert guest.get("x21") == 0x0200_0000  # it is undefined what comes behind
    assert (guest.get("x9"), guest.get("x10"), guest.system.memory.load(DATA, 8)) == (7, 7, 7)


@pytest.mark.parametrize("kind", ["b", "w"])
def test_another_cpu_has_its_own(kind: str) -> None:
    """CPU 0 sets one and starts CPU 1, which does what CPU 0 then does."""
    second = CODE + 0x400
    place, control = (CODE + 0x600, 0x1E7) if kind == "b" else (DATA, 0x1FF7)
    wait = f"{value('x5', DATA + 0x1000)}; again: ldr x6, [x5]; cbz x6, again"
    enable = "mrs x2, mdscr_el1; mov x3, #0xa000; orr x2, x2, x3; msr mdscr_el1, x2; msr daifclr, #8; isb"
    start = f"{value('x0', 0xC4000003)}; mov x1, #1; {value('x2', second)}; mov x3, #0; hvc #0"
    common = f"{value('x1', DATA)}; {value('x9', CODE + 0x600)}; br x9"
    guest = Guest(f"msr oslar_el1, xzr; {pair(kind, place, control)}; {enable}; {start}; {wait}; {common}", cpus=2)
    memory = guest.system.memory
    done = f"{value('x9', CODE + 0x680)}; br x9"
    memory.write(second, assemble(ARM64, f"msr oslar_el1, xzr; {enable}; {common}", second))
    memory.write(CODE + 0x600, assemble(ARM64, f"str x1, [x1]; {done}", CODE + 0x600))
    memory.write(
        CODE + 0x680, assemble(ARM64, f"{value('x5', DATA + 0x1000)}; str x5, [x5]; stay: b stay", CODE + 0x680)
    )
    report = guest.run().report()
    assert hex(report["esr"] & ~(1 << 26)) == hex(MET if kind == "b" else WATCHED_STORE)
    assert report["elr"] == CODE + 0x600
    assert memory.load(DATA, 8) == DATA


def test_another_cpu_does_not_get_in_between() -> None:
    """CPU 1 always has something to do while CPU 0 stores to a watched page, but not what is watched."""
    second = CODE + 0x400
    start = f"{value('x0', 0xC4000003)}; mov x1, #1; {value('x2', second)}; mov x3, #0; hvc #0"
    wait = f"{value('x5', DATA + 0x1000)}; wait: ldr x6, [x5]; cbz x6, wait"
    stores = f"{value('x1', DATA)}; mov x7, #10; again: str x7, [x1, #8]; subs x7, x7, #1; b.ne again"
    guest = Guest(f"msr oslar_el1, xzr; {start}; {wait}; {pair('w', DATA, 0x1FF7)}; isb; {stores}", cpus=2)
    busy = f"{value('x5', DATA + 0x1000)}; str x5, [x5]; stay: add x6, x6, #1; b stay"
    guest.system.memory.write(second, assemble(ARM64, busy, second))
    assert guest.system.run(30_000_000) is End.POWER_OFF
    assert guest.system.memory.load(DATA + 8, 8) == 1


@pytest.mark.parametrize(
    ("value", "control", "expected"),
    [
        (0x1000, 0x1FF5, Watchpoint(0x1000, 0x1007, 2, 2)),
        (0x1000, 0x1E15, Watchpoint(0x1004, 0x1007, 2, 2)),
        (0x1004, 0x1FF5, Watchpoint(0x1004, 0x1007, 2, 2)),
        (0x1000, 0x18FF, Watchpoint(0x1000, 0x1002, 3, 3)),
        (0x12345, 12 << 24 | 0x1FED, Watchpoint(0x12000, 0x12FFF, 1, 2)),
        (0x1000, 0x1FF4, None),
        (0x1000, 0x0015, None),
        (0x1004, 0x1E15, None),
    ],
)
def test_what_the_registers_say(value: int, control: int, expected: Watchpoint | None) -> None:
    assert watchpoint(value, control) == expected


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("ldrb w0, [x1]", 1), ("ldrsh x0, [x1, #2]", 2), ("str w0, [x1], #4", 4), ("ldr x0, [x1, x2]", 8),
        ("ldr b0, [x1]", 1), ("str h0, [x1]", 2), ("ldr s0, [x1]", 4), ("str d0, [x1]", 8), ("ldur q0, [x1, #1]", 16),
        ("ldp w0, w1, [x2]", 8), ("stp x0, x1, [x2, #-16]!", 16), ("ldpsw x0, x1, [x2]", 8), ("stp q0, q1, [x2]", 32),
        ("ldnp s0, s1, [x2]", 8), ("ldxrb w0, [x1]", 1), ("stlxr w2, x0, [x1]", 8), ("ldaxp x0, x3, [x1]", 16),
        ("ldarh w0, [x1]", 2), ("ld1 {v0.16b}, [x1]", 16), ("st1 {v0.8b, v1.8b}, [x1]", 16),
        ("ld4 {v0.4s, v1.4s, v2.4s, v3.4s}, [x1], #64", 64), ("st1 {v0.s}[1], [x1]", 4),
        ("ld3 {v0.h, v1.h, v2.h}[3], [x1]", 6),
        ("ld2 {v0.d, v1.d}[1], [x1]", 16), ("ld1r {v0.2d}, [x1]", 8), ("ld2r {v0.8h, v1.8h}, [x1]", 4),
        ("dc zva, x1", 64),
        ("prfm pldl1keep, [x1]", 8), ("nop", 1),
    ],
)  # fmt: skip
def test_how_many_bytes_an_instruction_accesses(text: str, size: int) -> None:
    word = int.from_bytes(assemble(ARM64, text), "little")
    assert accessed(word, 0x1040) == (0x1040, size)
