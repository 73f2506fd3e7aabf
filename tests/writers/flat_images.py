"""An ELF file -> its memory without headers, by pyelftools: what `objcopy -O binary` makes of it."""

from pathlib import Path

from elftools.elf.elffile import ELFFile


def flat_image(path: Path) -> tuple[bytes, int, int]:
    """The memory by physical address, the address of its first byte, and the entry point."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        loads = [one for one in elf.iter_segments("PT_LOAD") if one["p_filesz"]]
        start = min(one["p_paddr"] for one in loads)
        memory = bytearray(max(one["p_paddr"] + one["p_filesz"] for one in loads) - start)
        for one in loads:
            at = one["p_paddr"] - start
            memory[at : at + one["p_filesz"]] = one.data()
        return bytes(memory), start, elf["e_entry"]
