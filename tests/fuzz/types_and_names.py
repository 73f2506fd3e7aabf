"""Damaged BTF and symbol files: what names types and functions beside the image's own debug information."""

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.rewriter.cli import list_probes as kinst_list
from kinst.rewriter.cli import rewrite as kinst_rewrite
from kinst.runtime.cli import run as kinst_run
from kinst.targets.elf.sections import CodeRegion
from kinst.targets.errors import ImageError
from kinst.targets.names.symbol_file import read_symbol_file
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Kind, command
from tests.targets.debuginfo.btf_writer import Section
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64

_CODE: Final = bytes.fromhex("411106e4a260080041018280") * 8
_BASE: Final = 0x8000_0000
_PROGRAM: Final = """
    fbt::first:entry { trace(args[0]); print(*args[0]); trace(args[0]->count); trace(args[0]->in.low); }
    BEGIN { trace(sizeof (struct outer)); x = (enum mode)1; trace(FAST); }
    BEGIN { y = (user_t)0; trace(offsetof(union both, b)); }
"""


@cache
def _btf() -> bytes:
    section = Section()
    integer, char = section.integer("int", 4, 1), section.integer("char", 1, 1)
    count = section.add("count_t", 8, section.add("", 10, section.add("", 9, integer)))
    bits = section.struct("inner", 8, ("low", integer, 3 << 24), ("high", integer, 5 << 24 | 3), flag=1)
    text = section.add("", 3, 0, char, integer, 16)
    mode = section.add("mode", 6, 4, section.name("SLOW"), 0, section.name("FAST"), 1, length=2)
    wide = section.add("wide", 19, 8, section.name("HUGE"), 1, 2, length=1)
    forward = section.add("later", 7, 0)
    members = (("count", count, 0), ("in", bits, 64), ("text", text, 128), ("mode", mode, 256), ("wide", wide, 320))
    outer = section.struct("outer", 64, *members, ("next", section.add("", 2, 9), 384), ("later", forward, 448))
    pointer = section.add("", 2, outer)
    section.struct("both", 8, ("a", integer, 0), ("b", pointer, 0), kind=5)
    section.add("user_t", 8, section.add("", 18, section.add("", 11, pointer)))
    prototype = section.prototype(integer, ("given", pointer), ("", 0))
    section.add("first", 12, prototype, length=1)
    section.add("variable", 14, integer, 1)
    section.add("", 16, 8)
    return section.data


@cache
def _with_types() -> tuple[bytes, range]:
    parts = [Part(".text", _BASE, _CODE, 5), Part(".BTF", _BASE + 0x1000, _btf(), 4)]
    data = elf64(EM_RISCV, _BASE, parts, [Symbol("first", _BASE, 48), Symbol("second", _BASE + 48, 48)])
    start = data.index(_btf())
    return data, range(start, start + len(_btf()))


def _types(damage: Damage, folder: Path) -> None:
    data, place = _with_types()
    image = folder / "image.elf"
    image.write_bytes(damage.of(data, [place]))
    command(kinst_run, "-lv", image, "-n", "fbt:::entry")
    command(kinst_run, "-e", image, "-n", _PROGRAM)


# -- symbol files -----------------------------------------------------------------------------------------------------

_NAMES = st.one_of(
    st.sampled_from(
        ("first", "second", "first.cold", "$x", ".L1", "a" * 5000, "sub_80000000", "*", "a:b", "\x1b[31m", "é")
    ),
    st.text(max_size=12),
)
_ADDRESSES = st.one_of(
    st.integers(_BASE - 4, _BASE + 100).map("{:x}".format),
    st.integers(0, 1 << 68).map("{:x}".format),
    st.sampled_from(("", "0", "-1", "0x80000000", "٣", "8" * 4000, "ffffffffffffffff")),
)
_KINDS = st.sampled_from("TtDdBbWwUuAaVvRrIi?-NCtTtT")
_LINE = st.one_of(
    st.tuples(_ADDRESSES, _KINDS, _NAMES).map(" ".join),
    st.tuples(_ADDRESSES, _ADDRESSES, _KINDS, _NAMES).map(" ".join),
    st.tuples(_ADDRESSES, _KINDS, _NAMES, st.just("\t[module]")).map(" ".join),
    st.text(max_size=20),
)
_OTHER_TOOLS = st.sampled_from((
    '"Name","Location","Type"', "Name\tLocation\tFunction Size", '"first","80000000","Function"',
    "first\tram:80000000\t99",
    '"a\nb","EXTERNAL:1","Label"', '"', "SYMBOL TABLE:", "0000000080000000 g     F .text\t00000000000000ff first",
    "ffffffffffffffff l     O .data\tffffffffffffffff .hidden x", "  Address         Publics by Value",
    " 0001:00000000 000001000H .text CODE", " 0001:00000000       first(int)", " 0002:ffffffffffffffff  x",
))  # fmt: skip
_FILES = st.tuples(st.lists(st.one_of(_LINE, _OTHER_TOOLS), max_size=12), st.sampled_from(("\n", "\r\n", "\n\n", "\0")))


@cache
def _stripped() -> bytes:
    return elf64(EM_RISCV, _BASE, [Part(".text", _BASE, _CODE, 5)])


def _names(drawn: tuple[list[str], str], folder: Path) -> None:
    lines, end = drawn
    names = folder / "names"
    names.write_bytes(end.join(lines).encode(errors="surrogatepass"))
    for regions in ((), (CodeRegion(_BASE, 0, len(_CODE)),)):
        with suppress(ImageError):
            read_symbol_file(names, regions=regions)


def _symbols(drawn: tuple[list[str], str], folder: Path) -> None:
    lines, end = drawn
    image, names = folder / "image.elf", folder / "System.map"
    image.write_bytes(_stripped())
    names.write_bytes(end.join(lines).encode(errors="surrogatepass"))
    command(kinst_list, image, "fbt:::", "--symbols", names)
    command(kinst_rewrite, image, "--symbols", names, "--probe", "fbt:::", "-o", folder / "patched.elf")
    command(kinst_run, "-l", image, "--symbols", names, "-n", "fbt::first:")


BTF: Final = Kind("btf", damages(1), _types)
NAMES: Final = Kind("names", _FILES, _names)
SYMBOLS: Final = Kind("symbols", _FILES, _symbols)
