"""The GICv3 beside QEMU's: the same accesses, drawn at random, read the same at EL3, in both states, and below it."""

from pathlib import Path
from random import Random

import pytest

from tests.runtime.live.qemus import needs
from tests.runtime.machine.secure_programs import here, to_level, under_qemu, written

GICD, GICR, SGIS = 0x0800_0000, 0x080A_0000, 0x080B_0000
EL1, NS, FIQ, RW = 0x3C5, 1, 4, 1 << 10

# Interrupts 34 to 63 are nobody's on this board, or their devices are asleep.
BITS = (0x080, 0x100, 0x180, 0x200, 0x280, 0x300, 0x380, 0xD00)
SHARED = [GICD + at + 4 for at in BITS] + [GICD + at for at in (0x420, 0x424, 0x42C, 0xC08, 0xC0C)]
PRIVATE = [SGIS + at for at in (*BITS, 0x400, 0x404, 0x414, 0x41C, 0xC04)]
ROUTES = [GICD + 0x6000 + 8 * number for number in (34, 40, 63)]
FIXED = [GICD, GICR + 0x14, GICD + 0xFFE8, GICR + 0xFFE8]
QUIET = ~(1 << 1 | 1 << 30)  # the UART's interrupt is asserted by what it prints; timers are QEMU's own time
COMMON = {
    "s3_0_c4_c6_0": (0xF8, 0xF0, 0x80, 0x88, 0x40, 0),  # ICC_PMR_EL1
    "s3_0_c12_c12_3": (0, 2, 3, 5, 7),  # ICC_BPR1_EL1
    "s3_0_c12_c12_4": (0, 1, 2, 3),  # ICC_CTLR_EL1
    "s3_0_c12_c12_7": (0, 1, 1),  # ICC_IGRPEN1_EL1
    "s3_0_c12_c11_5": tuple(n << 24 | 1 for n in range(0, 16, 3)),  # ICC_SGI1R_EL1
    "s3_0_c12_c11_1": (3, 34, 40),  # ICC_DIR_EL1
}
SECURE = {
    "s3_0_c12_c8_3": (0, 2, 3, 5, 7),  # ICC_BPR0_EL1
    "s3_0_c12_c12_6": (0, 1, 1),  # ICC_IGRPEN0_EL1
    "s3_6_c12_c12_7": (0, 1, 2, 3, 3),  # ICC_IGRPEN1_EL3
    "s3_0_c12_c11_7": tuple(n << 24 | 1 for n in range(1, 16, 3)),  # ICC_SGI0R_EL1
    "s3_0_c12_c11_6": tuple(n << 24 | 1 for n in range(2, 16, 3)),  # ICC_ASGI1R_EL1
}
READ = ("s3_0_c12_c12_2", "s3_0_c12_c11_3", "s3_0_c12_c9_0")  # ICC_HPPIR1, RPR, AP1R0
READ_SECURE = ("s3_0_c12_c8_2", "s3_0_c12_c8_4")  # ICC_HPPIR0, AP0R0
WRITE_ONLY = ("c11_5", "c11_1", "c11_7", "c11_6")


class Accesses:
    """Instructions that access the controller and print what they read."""

    def __init__(self, seed: int) -> None:
        self.random, self.lines = Random(seed), [f"ldr x1, ={0x37}; ldr x2, ={GICD}; str w1, [x2]"]
        self.lines += [f"ldr x2, ={GICR + 0x14}; str wzr, [x2]; mov x0, #0xf; msr s3_6_c12_c12_5, x0"]

    def text(self) -> str:
        return "; ".join(self.lines)

    def memory(self, addresses: list[int]) -> None:
        address = self.random.choice(addresses)
        value = self.random.getrandbits(32)
        if address & 0xFFF in (0x084, 0x104, 0x204, 0x304, 0x100, 0x200, 0x300) and self.random.random() < 0.7:
            value |= self.random.getrandbits(32)
        if address == GICR + 0x14:
            value = 0
        if address == GICD:
            value = self.random.choice((0x37, 0x35, 0x33, 0x30, 0x12))
        value &= QUIET if address & 0xFFFF < 0x400 else -1
        value &= 0xF0F0F0F0 if 0x400 <= address & 0xFFFF < 0x500 else -1  # of eight bits, QEMU keeps all
        self.lines.append(f"ldr x2, ={address}; ldr x1, ={value}; str w1, [x2]; ldr w0, [x2]; bl show")

    def route(self) -> None:
        value = self.random.choice((0, 0, 1))
        address = self.random.choice(ROUTES)
        self.lines.append(f"ldr x2, ={address}; mov x1, #{value}; str x1, [x2]; ldr x0, [x2]; bl show")

    def register(self, registers: dict[str, tuple[int, ...]]) -> None:
        name = self.random.choice([*registers])
        self.lines.append(f"ldr x0, ={self.random.choice(registers[name])}; msr {name}, x0")
        if not name.endswith(WRITE_ONLY):
            self.lines.append(f"mrs x0, {name}; bl show")

    def take(self, crm: int) -> None:
        """Acknowledge, and perhaps end, what is pending."""
        self.lines.append(f"mrs x0, s3_0_c12_c{crm}_0; mov x21, x0; bl show; mrs x0, s3_0_c12_c11_3; bl show")
        if self.random.random() < 0.8:
            self.lines.append(f"msr s3_0_c12_c{crm}_1, x21")

    def look(self, names: tuple[str, ...]) -> None:
        self.lines.append(f"mrs x0, {self.random.choice(names)}; bl show")

    def draw(self, count: int, *, is_secure: bool) -> None:
        registers, read = (COMMON | SECURE, READ + READ_SECURE) if is_secure else (COMMON, READ)
        for _ in range(count):
            match self.random.randrange(9):
                case 0 | 1:
                    self.memory(SHARED)
                case 2 | 3:
                    self.memory(PRIVATE)
                case 4:
                    self.register(registers)
                case 5:
                    self.take(8 if is_secure and self.random.random() < 0.5 else 12)
                case 6:
                    self.route()
                case 7:
                    self.memory(FIXED)
                case _:
                    self.look(read)


def program(seed: int) -> str:
    """Both states at EL3, and then non-secure EL1."""
    drawn = Accesses(seed)
    drawn.draw(60, is_secure=True)
    drawn.lines.append("mov x0, #1; msr scr_el3, x0; isb")
    drawn.draw(30, is_secure=True)
    drawn.lines.append("mov x0, #8; msr s3_4_c12_c9_5, x0; mov x0, #0xf; msr s3_4_c12_c9_5, x0")
    # What would be a FIQ for EL3 there is not enabled: our machine takes it later than QEMU.
    drawn.lines.append("mov x0, #1; msr s3_6_c12_c12_7, x0; msr s3_0_c12_c12_6, xzr")
    drawn.lines.append(to_level(EL1, NS | RW | (FIQ if seed & 1 else 0)))
    drawn.draw(40, is_secure=False)
    return drawn.text()


@pytest.mark.parametrize("seed", range(6))
def test_it_reads_what_qemu_s_does(seed: int, tmp_path: Path) -> None:
    needs("qemu-system-aarch64")
    image = written(tmp_path, program(seed))
    assert here(image).split() == under_qemu(image).split()
