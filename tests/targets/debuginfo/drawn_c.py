"""Seeds -> C files full of types, for readers of debug information to agree about: structs, unions, bit-fields, arrays,
enumerations, pointers to functions, chains of typedefs, declarations, flexible arrays, anonymous members."""

import random
from collections.abc import Callable, Iterator

_BASES = (
    "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long", "unsigned long",
    "long long", "unsigned long long", "_Bool", "float", "double", "long double",
)  # fmt: skip
_FIELDS = ("signed char", "unsigned short", "int", "unsigned int", "long", "unsigned long", "_Bool")


class _File:
    """One source file. Tags and names are `prefix` and a number."""

    def __init__(self, choose: random.Random, prefix: str) -> None:
        self.choose, self.prefix = choose, prefix
        self.lines: list[str] = []
        self.whole = list(_BASES)  # what has a size
        self.pointed = ["void"]
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count}"

    def declared(self, name: str) -> str:
        """A declaration of some type, without its semicolon."""
        choose = self.choose
        drawn = choose.randrange(9)
        if drawn < 4:
            return f"{self.qualified()}{choose.choice(self.whole)} {name}"
        if drawn < 6:
            stars = choose.choice(("*", "**", "*const ", "*volatile "))
            return f"{choose.choice(self.whole + self.pointed)} {stars}{name}"
        if drawn == 6:
            return f"{choose.choice(self.whole)} {name}" + "".join(
                f"[{choose.randrange(1, 9)}]" for _ in range(choose.randrange(1, 4))
            )
        if drawn == 7:
            return f"{choose.choice(self.whole)} (*{name}[{choose.randrange(1, 4)}])({self.parameters()})"
        return f"{choose.choice(self.pointed)} *(*{name})({self.parameters()})"

    def qualified(self) -> str:
        return self.choose.choice(("", "", "", "const ", "volatile "))

    def parameters(self, *names: str) -> str:
        choose = self.choose
        found = [
            f"{choose.choice(self.whole)} {name}" if choose.randrange(3) else f"{choose.choice(self.pointed)} *{name}"
            for name in names or [""] * choose.randrange(4)
        ]
        return ", ".join([*found, "..."] if found and not choose.randrange(5) else found) or "void"

    def members(self, *, is_last: bool) -> list[str]:
        choose = self.choose
        found = [self.member() for _ in range(choose.randrange(1, 7))]
        if is_last and not choose.randrange(4):
            found.append(f"{choose.choice(self.whole[:9])} {self.name()}[];")
        return found

    def member(self) -> str:
        choose = self.choose
        drawn = choose.randrange(8)
        if drawn < 5:
            return f"{self.declared(self.name())};"
        if drawn == 5:
            kind, word = choose.choice(_FIELDS), choose.choice(("struct", "union"))
            if choose.randrange(2):
                return f"{word} {{ {' '.join(self.members(is_last=False))} }};"
            return f"{word} {{ {' '.join(self.members(is_last=False))} }} {self.name()};"
        kind = choose.choice(_FIELDS)
        bits = {"signed char": 8, "unsigned short": 16, "int": 32, "unsigned int": 32, "_Bool": 1}.get(kind, 64)
        return f"{kind} {self.name()} : {choose.randrange(1, bits + 1)};"

    def aggregate(self) -> None:
        choose, tag = self.choose, self.name()
        word = choose.choice(("struct", "struct", "union"))
        packed = " __attribute__((packed))" if not choose.randrange(6) else ""
        self.pointed.append(f"{word} {tag}")
        body = " ".join([f"{word} {tag} *{self.name()};", *self.members(is_last=word == "struct" and not packed)])
        if packed:  # GNU ld 2.40 gives one that ends with a bit-field the size of a word behind the field's start
            body += f" double {self.name()};"
        self.lines.append(f"{word}{packed} {tag} {{ {body} }};")
        self.whole.append(f"{word} {tag}")

    def large(self) -> None:
        """A struct of so many bytes that formats have another shape for its members."""
        tag = self.name()
        self.lines.append(
            f"struct {tag} {{ char {self.name()}[{self.choose.randrange(9000, 200000)}]; int {self.name()}; }};"
        )
        self.whole.append(f"struct {tag}")

    def enumeration(self) -> None:
        choose, tag = self.choose, self.name()
        values = (f"{self.name()} = {choose.randrange(-(2**31), 2**31)}" for _ in range(choose.randrange(1, 6)))
        few = (f"{self.name()} = {choose.randrange(100)}" for _ in range(choose.randrange(1, 6)))
        self.lines.append(f"enum {tag} {{ {', '.join(choose.choice((values, few)))} }};")
        self.whole.append(f"enum {tag}")

    def typedef(self) -> None:
        name = self.name()
        self.lines.append(f"typedef {self.declared(name)};")
        self.pointed.append(name)

    def forward(self) -> None:
        self.pointed.append(f"{self.choose.choice(('struct', 'union'))} {self.name()}")
        self.lines.append(f"{self.pointed[-1]};")


def drawn_file(seed: int, prefix: str, *, is_first: bool) -> str:
    """A source file: types, a variable of each, and functions; the first one has `start`."""
    choose = random.Random(f"{seed} {prefix}")
    file = _File(choose, prefix)
    makes: tuple[Callable[[], None], ...] = (
        *(file.aggregate, file.aggregate, file.enumeration, file.typedef, file.forward, file.large),
    )
    for _ in range(16):
        choose.choice(makes)()
    tags = [
        kind for kind in (*file.whole, *file.pointed) if " " in kind and kind.split()[0] in ("struct", "union", "enum")
    ]
    lines = [f"{kind} *{file.name()};" for kind in (*dict.fromkeys(tags), *file.pointed[1:])]
    lines += [f"{file.declared(file.name())};" for _ in range(12)]
    for _ in range(8):
        names = [f"p{row}" for row in range(choose.randrange(6))]
        head = f"{choose.choice(('', 'static __attribute__((used)) '))}{choose.choice(file.pointed)} *{file.name()}"
        lines.append(f"{head}({self_parameters(file, names)}) {{ return 0; }}")
    start = ["void start(void) { for (;;); }"] if is_first else []
    return "\n".join([*file.lines, *lines, *start]) + "\n"


def self_parameters(file: _File, names: list[str]) -> str:
    return file.parameters(*names) if names else "void"


def names_of(source: str) -> Iterator[str]:
    """Structs, unions, enumerations and typedefs of a drawn file."""
    for line in source.splitlines():
        words = line.replace("__attribute__((packed)) ", "").split()
        if words[0] in ("struct", "union", "enum") and words[2:3] == ["{"]:
            yield f"{words[0]} {words[1]}"
