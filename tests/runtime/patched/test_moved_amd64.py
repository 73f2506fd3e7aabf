"""amd64 code that runs where it was not linked: in the identity map, in a copy that it makes of itself, and at last at
its link address. It keeps a log of what it sees: return addresses, addresses and contents of its data."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from kinst.rewriter.assemble import assemble
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.write import write_image
from kinst.runtime import Machine, Options
from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.given import MethodName
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.hits import Hit
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.errors import MachineError
from kinst.targets.probe import parse_probe_names
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

LINK, LOAD, COPY, LOG = 0xFFFF_FFFF_8010_0000, 0x10_0000, 0x40_0000, 0x60_0000
STEP, SIZE = 0x80, 0x1010  # of a function; of what the image copies
WORD, POINTER = 0x1000, 0x1008  # data, from where the image begins

# keystone reads numbers as hexadecimal. r13 is the log; `inner` is called through memory, `work` by a displacement.
FUNCTIONS = {
    "start": f"mov ${LOG:#x}, %r13d; call work; call *pointer(%rip); jmp move",
    "move": (
        f"lea start(%rip), %rsi; mov ${COPY:#x}, %edi; mov ${SIZE // 8:#x}, %ecx; rep movsq; "
        f"mov ${COPY:#x}, %eax; add $(second - start), %rax; jmp *%rax"
    ),
    "second": f"call work; mov ${LINK:#x}, %rax; add $(third - start), %rax; jmp *%rax",
    "third": "call work; call *pointer(%rip); movl $0x77, word(%rip); call work; outb %al, $0xf4",
    "work": (
        "push %rbp; mov %rsp, %rbp; sub $0x18, %rsp; addl $0x1234, word(%rip); lea word(%rip), %rax; nop; "
        "mov word(%rip), %edx; mov %rax, (%r13); mov %rdx, 8(%r13); mov 8(%rbp), %rcx; mov %rcx, 0x10(%r13); "
        "add $0x18, %r13; cmpl $0, word(%rip); jne end; nop; end: leave; ret"
    ),
    "inner": "push %rbx; mov 8(%rsp), %rbx; mov %rbx, (%r13); add $8, %r13; pop %rbx; ret",
}
WAYS = (LOAD, COPY, LINK)  # where each function lies while it runs


def image(folder: Path) -> Path:
    """The kernel. The board maps its physical memory at the link address as well."""
    inner = LOAD + STEP * list(FUNCTIONS).index("inner")
    code = "; .p2align 7; ".join(f"{name}: {text}" for name, text in FUNCTIONS.items())
    content = assemble(AMD64, f"{code}; .p2align 0xc; word: .quad 7; pointer: .quad {inner:#x}", LINK)
    symbols = [Symbol(name, LINK + STEP * row, STEP) for row, name in enumerate(FUNCTIONS)]
    path = folder / "moves.elf"
    path.write_bytes(elf64(EM_X86_64, LOAD, [Part(".text", LINK, content, 7, load_address=LOAD)], symbols))
    return path


def run(path: Path, *descriptions: str, method: MethodName | None = None) -> tuple[Guest, Counter[int]]:
    """To its end; the addresses at which probes fired."""
    fired = Counter[int]()

    def action(hit: Hit) -> None:
        fired[hit.address] += 1

    with open_image(path) as file:
        trace = file.trace(
            actions=dict.fromkeys(descriptions, action), machine=Machine(clock="icount"), options=Options(method=method)
        )
    assert trace.run(seconds=5) is End.POWER_OFF
    return trace.guest, fired


def run_patched(path: Path) -> tuple[Guest, int]:
    """A patched file with its own probes; how often they fired."""
    with open_image(path) as file:
        trace = file.trace(machine=Machine(clock="icount"))
    assert trace.run(seconds=5) is End.POWER_OFF
    return trace.guest, len(trace.take())


def left(guest: Guest) -> tuple[bytes, list[bytes], int]:
    """The log, the data of the image and of its copy, and the time."""
    read = guest.system.memory.read
    data = [read(base + WORD, 16) for base in (LOAD, COPY)]
    assert data[0] != data[1]  # the copy has data of its own
    return read(LOG, 0x100), data, guest.system.clock.now()


@pytest.mark.parametrize("method", ["auto", "emulate", "block", "trap"])  # "jump" has no handler
@pytest.mark.parametrize("descriptions", [("kinst:::",), ("fbt:::",), ("fbt::work:entry",)])
def test_moved_code_does_what_it_does_without_probes(
    tmp_path: Path, descriptions: Sequence[str], method: MethodName
) -> None:
    """The data of a copy are the copy's, what a call pushes is where the copy goes on, and time is the same."""
    path = image(tmp_path)
    plain, _ = run(path)
    probed, fired = run(path, *descriptions, method=method)
    assert left(probed) == left(plain)
    work = STEP * list(FUNCTIONS).index("work")
    assert [fired[base + work] for base in WAYS] == [1, 1, 2]


def test_every_instruction_of_moved_code_fires(tmp_path: Path) -> None:
    _, fired = run(image(tmp_path), "kinst:::")
    start = STEP * list(FUNCTIONS).index("work")
    by_way = [{at - base for at in fired if start <= at - base < start + STEP} for base in WAYS]
    assert by_way[0] == by_way[1] == by_way[2]
    assert len(by_way[0]) == 16  # all but the nop that is jumped over


def test_without_room_for_trampolines_what_can_be_is_emulated(tmp_path: Path) -> None:
    """The room is below the trampolines of the file, where a user put them right behind the image."""
    path = image(tmp_path)
    patched = rewritten(path, "fbt::work:entry", "fbt::inner:")
    plain, _ = run(path)
    probed, fired = run_patched(patched)
    assert left(probed) == left(plain)
    assert fired == 4 + 2 * 2
    with pytest.raises(MachineError, match="at 0x100208 can have no trampoline"):
        run_patched(rewritten(path, "kinst::work:"))


def rewritten(path: Path, *descriptions: str) -> Path:
    """With its trampolines right behind it."""
    names = [name for text in descriptions for name in parse_probe_names(text)]
    end = LINK + SIZE + -SIZE % 0x1000
    _, plan = plan_probes(open_source(Source(path)), names, trampoline_base=end)
    out = path.with_name(f"patched{len(plan.manifest.sites)}.elf")
    write_image(plan, out)
    return out
