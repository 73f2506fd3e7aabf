"""Damaged CTF: of illumos, of FreeBSD (compressed after the damage), and an archive that gcc and GNU ld made."""

import shutil
import subprocess
import tempfile
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from kinst.runtime.cli import run as kinst_run
from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    CType,
    EnumType,
    Function,
    ImageTypes,
    Integer,
    IntegerKind,
    Member,
    Pointer,
    Qualified,
    Typedef,
    size_of,
)
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Kind, command
from tests.targets.debuginfo.ctf_writer import SUN2, SUN3, Writer
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64

_CODE: Final = bytes.fromhex("411106e4a260080041018280") * 8
_BASE: Final = 0x8000_0000
_HEADER: Final = 36  # bytes of Sun's
_FLAGS: Final = 3  # where the byte of flags is
_PROGRAMS: Final = (
    "fbt::first:entry { trace(args[0]); print(*args[0]); trace(args[0]->count); trace(args[0]->in.low); }",
    "BEGIN { trace(sizeof (struct outer)); x = (enum mode)1; trace(FAST); y = (user_t)0; }",
    "BEGIN { trace(offsetof(union both, b)); }",
    "BEGIN { print(`variable); print(`table[1][2]); trace(((struct hidden *)0)->b); print(`hook); }",
)
_SOURCES: Final = {
    "a.c": """
    typedef unsigned count_t; enum mode { SLOW, FAST = 7 }; struct hidden { int a; }; struct hidden *variable;
    struct inner { int low : 3, high : 17; }; struct outer { count_t count; struct inner in; char text[16];
    enum mode mode; struct outer *next; struct later *later; }; union both { int a; struct outer *b; } both;
    typedef const struct outer *user_t; user_t user; struct inner table[2][3]; int (*hook)(const char *, ...);
    int first(struct outer *given, ...) { return given->count; } void start(void) { first(0); for (;;); }
    """,
    "b.c": "struct hidden { long b; }; static int local(struct hidden *x) { return x->b; }\n"
    "int second(struct hidden *x) { return local(x); }",
}


def _types() -> Function:
    integer = Integer("int", 4, is_signed=True)
    char = Integer("char", 1, is_signed=True, kind=IntegerKind.CHARACTER)
    inner, outer = Aggregate(AggregateKind.STRUCT, "inner"), Aggregate(AggregateKind.STRUCT, "outer")
    inner.complete((Member("low", integer, 0, 0, 3), Member("high", integer, 0, 3, 17)), 4, 4)
    later = Aggregate(AggregateKind.STRUCT, "later")
    mode = EnumType("mode", integer, (("SLOW", 0), ("FAST", 7)))
    both = Aggregate(AggregateKind.UNION, "both")
    both.complete((Member("a", integer, 0), Member("b", Pointer(outer), 0)), 8, 8)
    user = Typedef("user_t", Qualified(Pointer(both), is_const=True))
    kinds: tuple[CType, ...] = (Typedef("count_t", integer), inner, Array(Array(char, 16), 70000), mode, user)
    offsets = (0, 4, 8, 1120008, 1120016)
    members = [Member(f"m{at}", kind, at) for kind, at in zip(kinds, offsets, strict=True)]
    members[0] = Member("count", kinds[0], 0)
    members[1] = Member("in", inner, 4)
    outer.complete((*members, Member("later", Pointer(later), 1120024)), 1120032, 8)
    return Function(integer, (Pointer(outer), Pointer(Function(integer, (char, integer, char)))), is_variadic=True)


@cache
def _written(form: tuple[int, int]) -> bytes:
    writer, first = Writer(form, labels=["build"]), _types()
    writer.describe([("STT_FUNC", "first"), ("STT_FUNC", "second")], lambda _, name: first if name == "first" else None)
    return writer.data()


@cache
def _linked() -> tuple[bytes, range] | None:
    """What the compiler makes of two files that differ in a struct; None if it is not there."""
    compiler = "riscv64-linux-gnu-gcc"
    if shutil.which(compiler) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _SOURCES.items():
            (Path(folder) / name).write_text(text)
        flags = (
            "-O1",
            "-w",
            "-gctf",
            "-ffreestanding",
            "-nostdlib",
            "-static",
            "-Wl,-e,start,-N,-Ttext=0x80000000,--ctf-variables,--build-id=none",
        )
        subprocess.run([compiler, *flags, "-o", "image", *_SOURCES], cwd=folder, check=True, capture_output=True)
        section = Path(folder) / "section"
        copy = ["riscv64-linux-gnu-objcopy", "-O", "binary", "--only-section=.ctf", "--set-section-flags", ".ctf=alloc"]
        subprocess.run([*copy, "image", str(section)], cwd=folder, check=True, capture_output=True)
        data, content = (Path(folder) / "image").read_bytes(), section.read_bytes()
    start = data.index(content)
    return data, range(start, start + len(content))


def _image(damage: Damage) -> bytes:
    if damage.base == 2 and (linked := _linked()) is not None:
        data, place = linked
        return damage.of(data, [place])
    section = _written((SUN2, SUN3)[damage.base % 2])
    section = damage.of(section, [range(len(section))])
    if damage.base == 1 and len(section) > _HEADER:
        flags = section[_FLAGS] | 1
        section = section[:_FLAGS] + bytes([flags]) + section[_FLAGS + 1 : _HEADER] + zlib.compress(section[_HEADER:])
    parts = [Part(".text", _BASE, _CODE, 5), Part(".SUNW_ctf", _BASE + 0x1000, section or b"\0", 4)]
    return elf64(EM_RISCV, _BASE, parts, [Symbol("first", _BASE, 48), Symbol("second", _BASE + 48, 48)])


def _damaged(damage: Damage, folder: Path) -> None:
    """Everything is asked of the reader; of a damage in one place, the commands as well, which take longer."""
    path = folder / "image.elf"
    path.write_bytes(_image(damage))
    with suppress(ImageError):
        _ask(image_types(open_image(path)))
    if len(damage.changes) == 1:
        command(kinst_run, "-lv", path, "-n", "fbt:::entry")
        for program in _PROGRAMS:
            command(kinst_run, "-e", path, "-n", program)


def _ask(types: ImageTypes) -> None:
    for name in (
        "struct outer",
        "struct inner",
        "union both",
        "struct hidden",
        "enum mode",
        "user_t",
        "count_t",
        "int",
    ):
        _walk(types.type_named(name), 6)
    for name in ("first", "second", "start", "local"):
        _walk(types.function(name), 6)
    for name in ("variable", "table", "hook", "both", "user", "first"):
        symbol = types.symbol(name)
        _walk(None if symbol is None else symbol.type, 6)
    types.enumerator("FAST")
    assert isinstance(types.obstacle(), str) and list(types.sources())


def _walk(kind: CType | None, depth: int) -> None:
    """Look at all that a type is made of."""
    if kind is None or not depth:
        return
    size_of(kind)
    match kind:
        case Pointer(target) | Typedef(_, target) | Qualified(target) | Array(target):
            _walk(target, depth - 1)
        case Function(result, parameters):
            for one in (result, *(parameters or ())[:50]):
                _walk(one, depth - 1)
        case Aggregate() as aggregate:
            for member in (aggregate.members or ())[:50]:
                _walk(member.type, depth - 1)
        case _:
            pass


CTF: Final = Kind("ctf", damages(3), _damaged)
