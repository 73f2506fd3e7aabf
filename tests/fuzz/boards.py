"""Board files and the device trees that they are made of: both are a user's, and may be hostile."""

from functools import cache
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from kinst.runtime.cli import run as kinst_run
from kinst.runtime.machine.devices.fdt import Node, Value, flatten
from kinst.targets.machines.board_file import read_board
from kinst.targets.machines.kinds import KINDS
from kinst.targets.machines.registry import BOARDS as SHIPPED
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Finding, Kind, command
from tests.writers.elf import EM_AARCH64, EM_RISCV, Part, Symbol, elf64

# -- board files ------------------------------------------------------------------------------------------------------

_CODES: Final = {  # load, store and a jump back: of what is at the address in the first argument
    "arm64": (EM_AARCH64, "010040b9 010400b9 feffff17"),
    "riscv64": (EM_RISCV, "83250500 2322b500 6ff09fff"),
}
_NUMBERS: Final = st.one_of(
    st.sampled_from((0, 1, 0x1000, 0x4000_0000, 0x900_0000, (1 << 40) - 1, 1 << 40, (1 << 64) - 1, 1 << 64, -1)),
    st.integers(0, 1 << 41),
)
_VALUES: Final[st.SearchStrategy[Any]] = st.one_of(
    _NUMBERS,
    st.sampled_from(("true", "false")),
    st.sampled_from(
        ('"last"', '"fault"', '"fdt"', '"cpu"', '"behind"', '"4k"', '"16m"', '"EL2"', '"S"', '"ram"', "1.5")
    ),
    st.sampled_from(("[]", "[1, 2]", '["x"]', '{ rule = "toggle" }', '{ rule = "count", step = 3 }', "{ rule = 1 }")),
    st.sampled_from(tuple(f'"{kind}"' for kind in KINDS)),
    st.text(alphabet='a"\\\n\0é=[]#', max_size=6),
)
_KEYS: Final = st.sampled_from(
    (
        *("address", "size", "kind", "alias", "offset", "interrupt", "reads", "space", "level", "x0", "a1", "entry"),
        *("device-tree", "timebase", "cpus", "extends", "starts", "unnamed", "reg-shift", "sources", "words", "é", "R"),
    )
)
_TABLES: Final = st.sampled_from(
    (
        *("[start]", "[memory.b]", "[devices.console]", "[devices.d]", "[registers]", "[registers.r]"),
        *("[registers.r.R]", "[qemu]", "[loader]", "[[memory]]", "[a.b.c]", "[memory]", "[devices]"),
    )
)
_LINES: Final = st.one_of(st.tuples(_KEYS, _VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}"), _TABLES)


def _read(drawn: tuple[str, list[str]], folder: Path) -> None:
    cpu, lines = drawn
    start = f'cpu = "{cpu}"\n[memory.ram]\naddress = 0x4000_0000\nsize = "16m"\n'
    file, image = folder / "board.toml", folder / "image.elf"
    file.write_text(start + "\n".join(lines) + "\n")
    machine, code = _CODES[cpu]
    text = bytes.fromhex(code)
    image.write_bytes(
        elf64(machine, 0x4000_0000, [Part(".text", 0x4000_0000, text, 5)], [Symbol("f", 0x4000_0000, 12)])
    )
    command(kinst_run, image, "--clock", "icount", "--timeout", "20us", "--board", file)


# -- board files of device trees --------------------------------------------------------------------------------------


@cache
def _tree() -> bytes:
    root = Node("", {"#address-cells": 2, "#size-cells": 2, "model": "board"})
    root.add("memory@40000000", {"device_type": "memory", "reg": (0, 0x4000_0000, 0, 0x100_0000)})
    root.add("cpus", {"#address-cells": 1, "#size-cells": 0}).add("cpu@0", {"device_type": "cpu", "reg": 0})
    root.add("aliases", {"serial0": "/soc/serial@1000"})
    root.add("chosen", {"stdout-path": "serial0:115200n8"})
    soc = root.add("soc", {"#address-cells": 1, "#size-cells": 1, "ranges": (0, 0, 0x1000_0000, 0x100_0000)})
    uart: dict[str, Value] = {
        "compatible": "snps,dw-apb-uart",
        "reg": (0x1000, 0x100),
        "reg-shift": 2,
        "interrupts": (0, 5, 4),
    }
    soc.add("serial@1000", uart)
    soc.add("gic@2000", {"compatible": "arm,gic-400", "reg": (0x2000, 0x1000, 0x3000, 0x2000)})
    soc.add("sram@8000", {"compatible": "mmio-sram", "reg": (0x8000, 0x2000)})
    soc.add("clock@4000", {"reg": (0x4000, 0x100, 0x5000, 0x200), "reg-names": ("a", "b")})
    return flatten(root)


def _made(damage: Damage, folder: Path) -> None:
    tree, file, data = folder / "tree.dtb", folder / "made.toml", _tree()
    tree.write_bytes(damage.of(data, [range(len(data))]))
    result = command(kinst_run, "--board-from", tree)
    if result.exit_code == 0:
        file.write_text(result.stdout)
        try:
            read_board(file, SHIPPED)
        except Exception as error:
            raise Finding(f"what was made is not read: {error}") from error


BOARDS: Final = Kind("boards", st.tuples(st.sampled_from(tuple(_CODES)), st.lists(_LINES, max_size=14)), _read)
BOARD_TREES: Final = Kind("board-trees", damages(1), _made)
