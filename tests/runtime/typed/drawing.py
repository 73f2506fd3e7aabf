"""Seeds -> C programs full of variables of drawn types, with drawn bytes in them; and what gdb prints of such."""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.targets.debuginfo.compiled import compiled

# Where the board of each machine has RAM. A program of riscv64 is far from 0.
PLACES: Final = {
    "amd64": ("-Wl,-Ttext-segment=0x400000",),
    "arm64": ("-Wl,-Ttext-segment=0x40400000",),
    "riscv64": ("-Wl,-Ttext-segment=0x80200000", "-mcmodel=medany"),
}
_HEAD: Final = """
typedef unsigned char u8; typedef signed char s8; typedef unsigned int u32; typedef unsigned long u64;
enum color { RED, GREEN = 5, BLUE, NEGATIVE = -3 };
enum flags { NONE, FIRST = 1, SECOND = 2, THIRD = 0x10, FOURTH = 0x40000000 };
typedef enum { SMALL, LARGE } sizes;
typedef int (*operation)(int, const char *);
struct known { int a; u8 b; };
struct known known = { 3, 4 };
int function(int x, const char *text) { return x + *text; }
"""
_SCALARS: Final = (
    *("char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long"),
    *("long long", "unsigned long long", "_Bool", "float", "double", "_Complex float", "_Complex double"),
    *("u8", "s8", "u32", "u64", "enum color", "enum flags", "sizes", "operation", "void *", "const char *", "int *"),
    *("struct known", "struct known *", "struct unknown *", "int (*)[3]", "const volatile int", "u8 *"),
)
_BITS: Final = {"int": 32, "unsigned": 32, "long": 64, "u64": 64, "_Bool": 1, "enum color": 32, "u8": 8, "short": 16}
_PACKED_BITS: Final = ("int", "unsigned", "long", "u64")


class Drawn:
    """A program with `count` variables v0.v, v1.v, ...: unions of a drawn struct and of bytes."""

    def __init__(self, seed: int, count: int, *, has_quad: bool) -> None:
        """`has_quad`: a long double may have any bits. Of x87's some are no numbers, and gdb has them from the host."""
        self._random = random.Random(seed)
        self._scalars = (*_SCALARS, "long double") if has_quad else _SCALARS
        self._number = 0
        parts = [_HEAD]
        for number in range(count):
            packed = self._random.random() < 0.2
            body = "".join(self._members(2, packed=packed))
            mark = " __attribute__((packed))" if packed else ""
            parts.append(f"struct s{number} {{ {body} struct s{number} *self; }}{mark};\n")
            data = ", ".join(map(str, self._bytes(1500)))
            own = f"unsigned char bytes[sizeof(struct s{number})]; struct s{number} v;"
            parts.append(f"union {{ {own} }} v{number} = {{ .bytes = {{ {data} }} }};\n")
        self.source = "".join(parts) + "void start(void) { for (;;) function(1, (char *)&known); }\n"
        self.names = [f"v{number}.v" for number in range(count)]

    def _bytes(self, count: int) -> list[int]:
        """Small numbers, letters and zeros more often than others."""
        choose = self._random
        found = list[int]()
        while len(found) < count:
            kind = choose.randrange(4)
            run = choose.randrange(1, 9)
            found += [
                (0, choose.randrange(32, 127), choose.randrange(256), choose.randrange(3))[kind] for _ in range(run)
            ]
        return found

    def _members(self, depth: int, *, packed: bool) -> list[str]:
        return [self._member(depth, packed=packed) for _ in range(self._random.randrange(1, 7))]

    def _member(self, depth: int, *, packed: bool) -> str:
        choose = self._random
        self._number += 1
        name = f"m{self._number}"
        match choose.randrange(8 if depth else 6):
            case 0:
                kind = choose.choice(_PACKED_BITS if packed else tuple(_BITS))
                return f"{kind} {name} : {choose.randrange(1, _BITS[kind] + 1)}; "
            case 1:
                lengths = "".join(f"[{choose.choice((1, 2, 3, 4, 13))}]" for _ in range(choose.randrange(1, 3)))
                return self._declared(choose.choice(self._scalars), name + lengths)
            case 6:
                inner = "".join(self._members(depth - 1, packed=packed))
                return f"{choose.choice(('struct', 'union'))} {{ {inner} }} {choose.choice((name, ''))}; "
            case 7:
                inner = "".join(self._members(depth - 1, packed=packed))
                return f"{choose.choice(('struct', 'union'))} {{ {inner} }} {name}[{choose.randrange(1, 4)}]; "
            case _:
                return self._declared(choose.choice(self._scalars), name)

    def _declared(self, kind: str, name: str) -> str:
        return f"int (*{name})[3]; " if kind == "int (*)[3]" else f"{kind} {name}; "


def linked(folder: Path, machine: str, source: str, *options: str) -> Path:
    """The program, where its machine has memory. Its initialisers are too long."""
    return compiled(folder, machine, {"drawn.c": source}, "-g", "-w", *PLACES[machine], *options).path


def printed(path: Path, expressions: Sequence[str]) -> list[str]:
    """What gdb prints of expressions, each in a line: of a text what is before its first NUL."""
    commands = ("set print null-stop on", "set width 0", "set max-value-size unlimited")
    words = [word for one in (*commands, *(f"output {each}" for each in expressions)) for word in ("-ex", one)]
    lines = [word for pair in zip(words[::2], words[1::2], strict=True) for word in (*pair, "-ex", "echo \\n")]
    done = subprocess.run(
        ["gdb-multiarch", "-nx", "-batch", *lines, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout.splitlines()[len(commands) :]
