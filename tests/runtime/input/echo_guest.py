"""A riscv64 program that sends back what it receives: the receive interrupt wakes it, or it polls. `x` switches off."""

from pathlib import Path

from tests.runtime.machine.riscv_words import (
    S0,
    S1,
    S2,
    T0,
    T1,
    WFI,
    ZERO,
    addi,
    bne,
    code,
    csrs,
    jal,
    la,
    li,
    load,
    store,
)
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64

ENTRY = 0x8000_0000
_TEST, _PLIC, _UART = 0x10_0000, 0xC00_0000, 0x1000_0000
_DATA, _IER, _FCR, _LSR = 0, 1, 2, 5
_BYTE, _WORD = 0, 2


def _say(letter: str) -> tuple[int, ...]:
    return addi(T0, ZERO, ord(letter)), store(T0, S0, _DATA, size=_BYTE)


def _bit(number: int) -> tuple[int, ...]:
    """That bit of T0 alone: shifted to the top and down again."""
    return T0 << 15 | T0 << 7 | 0x1013 | 63 - number << 20, T0 << 15 | T0 << 7 | 0x5013 | 63 << 20


_ECHO = (
    load(T0, S0, _DATA, size=_BYTE), addi(T1, ZERO, ord("x")), bne(T0, T1, 28),
    *li(T0, _TEST), *li(T1, 0x5555), store(T1, T0, size=_WORD), jal(ZERO, 0),
    store(T0, S0, _DATA, size=_BYTE),
)  # fmt: skip
_READ = (load(T0, S0, _LSR, size=_BYTE), *_bit(0))
# Until there is nothing more: read the status, leave if there is no data, send back.
_DRAIN = (
    *_READ,
    bne(T0, ZERO, 8),
    jal(ZERO, 4 * (len(_ECHO) + 2)),
    *_ECHO,
    jal(ZERO, -4 * (len(_READ) + 2 + len(_ECHO))),
)
_CLAIM = (load(T0, S2, 4, size=_WORD), store(T0, S2, 4, size=_WORD))
_SLEEPING = (
    *la(S0, _UART), *la(S1, _PLIC), *la(S2, _PLIC + 0x20_0000),
    addi(T0, ZERO, 1), store(T0, S1, 40, size=_WORD),  # priority of the UART's interrupt
    *li(T1, _PLIC + 0x2000), *li(T0, 1 << 10), store(T0, T1, size=_WORD),
    *li(T0, 1 << 11), csrs("mie", T0),  # a wfi ends though interrupts are masked
    addi(T0, ZERO, 1), store(T0, S0, _FCR, size=_BYTE), store(T0, S0, _IER, size=_BYTE),
    *_say(">"),
)  # fmt: skip
_AWAKE = (*_DRAIN, *_CLAIM)
_POLLING = (*la(S0, _UART), *_say(">"))
_PAUSE = (*li(T1, 1000), addi(T1, T1, -1), bne(T1, ZERO, -4))


def echo(folder: Path, *, polls: bool) -> Path:
    """The program as an ELF file with one function."""
    if polls:
        words = (*_POLLING, *_DRAIN, *_PAUSE, jal(ZERO, -4 * (len(_DRAIN) + len(_PAUSE))))
    else:
        words = (*_SLEEPING, WFI, *_AWAKE, jal(ZERO, -4 * (len(_AWAKE) + 1)))
    content, path = code(*words), folder / f"echo-{polls}.elf"
    part = Part(".text", ENTRY, content, 5)
    path.write_bytes(elf64(EM_RISCV, ENTRY, [part], [Symbol("echo", ENTRY, len(content))]))
    return path
