"""--kaslr-seed: where a kernel is put, what its boot loader tells it, and which words of an amd64 one are moved."""

from pathlib import Path

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.runtime.patched.moved_trampolines import moved_trampolines
from kinst.targets.arch.amd64 import Kind
from kinst.targets.errors import MachineError
from kinst.targets.image import Image, open_image
from kinst.targets.machines.registry import machine_facts
from kinst.targets.patch import Patch
from tests.runtime.machine.test_loader import MACHINES, RAM, VIRTUAL, boot_header
from tests.targets.debuginfo.compiled import compiled
from tests.writers.elf import Part, elf64

SEED = 0x1234_5678_9ABC_DEF0
STEP = 2 << 20
# Each word that a relocation speaks of stands 3 bytes behind its label, and `wide` is one of 8 bytes.
SOURCE = """
.globl start, address, absolute, relative, of_cpu, number, known, value
start: address: mov $value, %rax
relative: mov value(%rip), %rax
absolute: mov $limit, %rax
known: mov $init_per_cpu__mine, %rax
of_cpu: mov $mine, %rax
number: mov mine(%rip), %rax
.data
value: .quad 1
.globl wide
wide: .quad value
.section ".data..percpu", "aw"
.globl mine
mine: .quad 5
"""
SCRIPT = """
SECTIONS {
  . = 0xffffffff81000000;
  .text : AT(0x1000000) { *(.text) }
  . = 0xffffffff81600000;
  .data : AT(0x1600000) { *(.data) }
  .data..percpu 0 : AT(0x1400000) { *(.data..percpu) }
  __per_cpu_load = 0xffffffff81400000;
  limit = ABSOLUTE(0x1234);
  init_per_cpu__mine = ABSOLUTE(0xffffffff81400000);
}
"""


def loaded(image: Image, machine: str, seed: int | None, *patches: Patch) -> tuple[System, Loaded]:
    facts = machine_facts(machine)
    system = System(facts, board_of(machine), Configuration(clock=ClockKind.ICOUNT, kaslr_seed=seed))
    return system, load_image(image, facts, system.memory, kaslr_seed=seed, patches=patches)


def kernel(folder: Path, *options: str) -> Image:
    """A kernel for amd64 that keeps its relocations, or not."""
    (folder / "script").write_text(SCRIPT)
    return compiled(folder, "amd64", {"kernel.S": SOURCE}, f"-Wl,-T,{folder / 'script'}", *options)


def test_words_move_with_what_they_refer_to(tmp_path: Path) -> None:
    image = kernel(tmp_path, "-Wl,--emit-relocs")
    words = []
    for seed in (None, SEED):
        system, there = loaded(image, "pc-amd64", seed)
        found = {}
        for name in ("address", "relative", "absolute", "known", "of_cpu", "number", "wide"):
            link = image.symbols.address_of(name)
            assert link is not None
            physical = there.physical(link)
            assert physical is not None
            is_wide = name == "wide"
            found[name] = int.from_bytes(system.memory.read(physical + 3 * (not is_wide), 4), "little")
        words.append(found)
    bias = there.bias
    assert bias % STEP == 0 != bias
    assert there.segments[0][1] % STEP == 0
    assert there.entry == image.entry + there.segments[0][1] - 0x100_0000
    moved = {name: (words[1][name] - words[0][name]) % (1 << 32) for name in words[0]}
    stays = dict.fromkeys(("relative", "absolute", "of_cpu"), 0)
    assert moved == {"address": bias, "known": bias, "wide": bias, "number": -bias % (1 << 32), **stays}


def test_what_a_patch_replaced_does_not_move(tmp_path: Path) -> None:
    image = kernel(tmp_path, "-Wl,--emit-relocs")

    def words(*patched: str) -> list[bytes]:
        patches = [Patch(link[name], b"", b"\x90" * 7, f"{name} = nop") for name in patched]
        system, there = loaded(image, "pc-amd64", SEED, *patches)
        places = [there.physical(address) for address in link.values()]
        return [system.memory.read(place, 7) for place in places if place is not None]

    link = {name: image.symbols.address_of(name) or 0 for name in ("start", "relative", "number")}
    moved, patched = words(), words("start")
    assert patched == [image.read(link["start"], 7), *moved[1:]]
    assert patched[0] != moved[0]


def test_a_kernel_without_relocations_cannot_be_moved(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="--kaslr-seed: this is no Linux kernel that keeps its relocations"):
        loaded(kernel(tmp_path), "pc-amd64", SEED)


@pytest.mark.parametrize("machine", MACHINES)
def test_other_kernels_are_put_elsewhere_and_told_the_seed(tmp_path: Path, machine: int) -> None:
    path = tmp_path / "image.elf"
    text = Part(".text", VIRTUAL, boot_header(machine, 0x20_0000), 5, load_address=1 << 40)
    path.write_bytes(elf64(machine, VIRTUAL, [text]))
    system, image = loaded(open_image(path), MACHINES[machine], SEED)
    ((virtual, physical, _),) = image.segments
    assert virtual == VIRTUAL
    assert (physical - RAM[machine]) % STEP == 0 != physical - RAM[machine] - STEP
    system.board.start(image)
    assert SEED.to_bytes(8, "big") in bytes(system.memory.regions[0].view)


def test_a_moved_kernel_has_room_for_as_many_trampolines_as_it_wants(tmp_path: Path) -> None:
    system, there = loaded(kernel(tmp_path, "-Wl,--emit-relocs"), "pc-amd64", SEED)
    trampolines = moved_trampolines(system, there, 0xFFFF_FFFF_BF00_0000)
    assert trampolines is not None
    made = {trampolines.slot(Kind.PUSH, b"\x55", at) for at in range(5000)}
    assert len(made) == 5000
    assert all(slot in system.trap.trampolines for slot in made if slot is not None)
    assert None not in made
