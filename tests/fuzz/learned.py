"""What --learn and [registers] svd read: board files that extend each other, files with learned rules, SVD files."""

from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.runtime.cli import run as kinst_run
from kinst.targets.errors import KinstError
from kinst.targets.machines.board_file import read_board
from kinst.targets.machines.learned_file import Assumed, first_text, with_rule
from kinst.targets.machines.registers import Reads, Rule
from kinst.targets.machines.registry import BOARDS as SHIPPED
from kinst.targets.machines.svd import read_svd
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Finding, Kind, command
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64

_RAM: Final = 0x4000_0000
_BOARD: Final = f'cpu = "riscv64"\n[memory.ram]\naddress = {_RAM:#x}\nsize = "16m"\n[registers]\nunnamed = "last"\n'

# -- files with learned rules -----------------------------------------------------------------------------------------

_LINES: Final = st.sampled_from(
    (
        *("[registers]", "[registers.r]", "[registers.r.R4]", '[registers."é".R0]', "[registers.at-20000004]"),
        *("address = 0x2000_0000", "address = 0x2000_0004", "size = 0x100", "size = 4", "offset = 4", "offset = 0"),
        *("reads = 1", 'reads = "last"', "reads = [", "1, 2 ]", 'reads = { rule = "toggle" }', 'reads = "fault"'),
        *("# by f: x", "R4 = { offset = 4, reads = 1 }", "R4 = { offset = 4 } # mine", "x = '''", "[[registers.r]]"),
        *('description = """', '"""', "registers = 1", "r = { address = 0x2000_0000 }", "unnamed = 3", "é = 1", "\0"),
    )
)
_WORDS: Final = st.sampled_from((0, 1, 0x8000_0000, 0xFFFF_FFFF, (1 << 64) - 1)) | st.integers(0, (1 << 64) - 1)
_RULES: Final = st.one_of(
    st.builds(Rule, st.just(Reads.LAST), _WORDS, _WORDS, _WORDS, _WORDS, st.integers(0, 9)),
    st.builds(Rule, st.just(Reads.CONSTANT), _WORDS),
    st.builds(Rule, st.just(Reads.TOGGLE), _WORDS, _WORDS),
    st.builds(lambda value, step: Rule(Reads.COUNT, value, step=step), _WORDS, _WORDS),
    st.builds(lambda values: Rule(Reads.LIST, values=tuple(values)), st.lists(_WORDS, min_size=1, max_size=3)),
)
_ASSUMED: Final = st.builds(
    Assumed,
    st.sampled_from((0x2000_0000, 0x2000_0004, 0x3000_0000)),
    st.just(4),
    _RULES,
    st.text(max_size=8),
    st.text(max_size=8),
)


def _learn(drawn: tuple[list[str], list[Assumed]], folder: Path) -> None:
    lines, rules = drawn
    (folder / "board.toml").write_text(_BOARD)
    file = folder / "learned.toml"
    text = first_text("board.toml") + "\n".join(lines) + "\n"
    for assumed in rules:
        file.write_text(text)
        try:
            facts = read_board(file, SHIPPED)
        except KinstError:
            return
        changed = with_rule(text, facts, assumed)
        if changed is None:
            continue
        file.write_text(text := changed)
        unmodelled = [one for one in read_board(file, SHIPPED).ranges if 0 <= assumed.address - one.address < one.size]
        found = [
            next((each.rule for each in one.registers if each.offset == assumed.address - one.address), one.rule)
            for one in unmodelled
        ]
        if found != [assumed.rule]:
            raise Finding(f"{assumed.rule} was written, and {found} is read")


# -- guests that poll -------------------------------------------------------------------------------------------------

_CODE: Final = st.lists(
    st.sampled_from(
        (
            *(0x0005A503, 0x0045A583, 0x00A5A023, 0x0085A603),  # loads and stores: a0 = [a1], a1 = [a1 + 4], ...
            *(0x00157513, 0x0FF57513, 0x00C54533, 0x41F5551B, 0x00150513, 0xFFF54513),  # and, xor, shift, add
            *(0xFE050CE3, 0xFE051CE3, 0xFEC518E3, 0xFEC54AE3, 0x00051463, 0x0080006F),  # branches, back and forth
            *(0xC0102573, 0x00000073, 0x10500073, 0x00000013, 0x30200073, 0x00008067),  # rdtime, ecall, wfi, mret, ret
        )
    ),
    min_size=1,
    max_size=12,
)


def _poll(words: list[int], folder: Path) -> None:
    """a1 is a register's address. What was learned is read again, and the same command goes on."""
    image, board, learned = folder / "image.elf", folder / "board.toml", folder / "learned.toml"
    board.write_text(_BOARD)
    code = b"".join(word.to_bytes(4, "little") for word in (0x200005B7, 0x0005A503, *words, 0xFE000AE3))
    image.write_bytes(elf64(EM_RISCV, _RAM, [Part(".text", _RAM, code, 5)], [Symbol("f", _RAM, len(code))]))
    for _ in range(2):
        command(kinst_run, image, "--clock", "icount", "--timeout", "200us", "--board", board, "--learn", learned)
        if learned.exists():
            read_board(learned, SHIPPED)


# -- SVD files --------------------------------------------------------------------------------------------------------

_SVD: Final = b"""<?xml version="1.0"?>
<device><name>C</name><size>32</size><peripherals><peripheral><name>U</name><baseAddress>0x20000000</baseAddress>
<registers><register><name>DR</name><addressOffset>0x0</addressOffset></register>
<register><dim>3</dim><dimIncrement>4</dimIncrement><dimIndex>A,B,C</dimIndex><name>C%s</name>
<addressOffset>0x10</addressOffset><size>16</size></register>
<cluster><dim>2</dim><dimIncrement>0x10</dimIncrement><name>D[%s]</name><addressOffset>0x20</addressOffset>
<register derivedFrom="X"><name>S</name><addressOffset>#0</addressOffset></register></cluster></registers></peripheral>
<peripheral derivedFrom="U"><name>V</name><baseAddress>0x20001000</baseAddress></peripheral></peripherals></device>"""


def _svd(damage: Damage, folder: Path) -> None:
    svd, board = folder / "chip.svd", folder / "board.toml"
    svd.write_bytes(damage.of(_SVD, [range(len(_SVD))]))
    board.write_text(f'{_BOARD}svd = "chip.svd"\n[registers.r]\naddress = 0x2000_0000\nR = {{ offset = 4 }}\n')
    try:
        names = read_svd(svd)
    except KinstError:
        names = None
    try:
        facts = read_board(board, SHIPPED)
    except KinstError:
        if names is not None:
            raise
        return
    for one in facts.ranges:
        ends = [0]
        for each in one.registers:
            if each.offset < ends[-1] or each.offset + each.size > one.size:
                raise Finding(f"{one.name}.{each.name} overlaps another, or is beyond its range")
            ends.append(each.offset + each.size)


LEARNED: Final = Kind("learned", st.tuples(st.lists(_LINES, max_size=8), st.lists(_ASSUMED, max_size=4)), _learn)
POLLS: Final = Kind("polls", _CODE, _poll, seconds=60)
SVD: Final = Kind("svd", damages(1), _svd)
