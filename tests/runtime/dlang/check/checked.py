"""Check programs as text against a small image: what the checker says of them."""

from collections.abc import Iterator

from kinst.runtime.dlang.check.checker import Checker
from kinst.runtime.dlang.check.declarations.pragmas import set_option
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.program import Program
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parser import parse
from kinst.runtime.dlang.syntax.sugar import expand
from kinst.runtime.dlang.types import types as d
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    CType,
    EnumType,
    Function,
    Member,
    Pointer,
    Symbol,
    Typedef,
)

INNER = Aggregate(AggregateKind.UNION, "", 8, 8, (Member("u_long", d.LONG, 0), Member("u_char", d.CHAR, 0)))
PROC = Aggregate(AggregateKind.STRUCT, "proc")
PROC.complete(
    (
        Member("p_pid", d.INT, 0),
        Member("p_flag", d.UINT, 4, 1, 3),
        Member("p_next", Pointer(PROC), 8),
        Member("p_name", Array(d.CHAR, 16), 16),
        Member("", INNER, 32),
    ),
    40,
    8,
)
COLOR = EnumType("color", d.UINT, (("RED", 0), ("BLUE", 5)))
TYPES: dict[str, CType] = {"struct proc": PROC, "proc_t": Typedef("proc_t", PROC), "enum color": COLOR}
SYMBOLS = {
    symbol.name: symbol
    for symbol in (
        Symbol("curproc", "kernel", 0x1000, 8, Pointer(PROC)),
        Symbol("proc0", "kernel", 0x2000, 40, PROC),
        Symbol("main", "kernel", 0x3000, 77, Function(d.INT, ())),
        Symbol("hz", "kernel", 0x4000, 4, d.INT),
        Symbol("names", "kernel", 0x5000, 32, Array(d.CHAR, 32)),
        Symbol("table", "kernel", 0x6000, 32, Array(Array(d.INT, 4), 2)),
        Symbol("untyped", "kernel", 0x7000, 8),
    )
}


class Image:
    """What a kernel's debug information says."""

    def type_named(self, name: str, module: str = "") -> CType | None:
        return TYPES.get(name)

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        values = dict(COLOR.enumerators)
        return (COLOR, values[name]) if name in values else None

    def symbol(self, name: str, module: str = "") -> Symbol | None:
        return SYMBOLS.get(name) if module in ("", "kernel") else None

    def function(self, name: str, module: str = "") -> Function | None:
        return None

    def symbols(self) -> Iterator[Symbol]:
        return iter(SYMBOLS.values())

    def obstacle(self) -> str:
        return ""

    def sources(self) -> Iterator[str]:
        return iter(())


class Probes:
    """BEGIN has no arguments, fbt two; mixed: matches probes of different arguments, zero: none."""

    def match(self, description: str) -> MatchedProbes:
        match description.partition(":")[0]:
            case "fbt":
                return MatchedProbes(description, 1, (Pointer(PROC), d.INT))
            case "mixed":
                return MatchedProbes(description, 2, None, is_mixed=True)
            case "zero":
                return MatchedProbes(description, 0, None)
            case "none":
                raise DError("D_PDESC_ZERO", f"probe description {description} does not match any probes")
            case _:
                return MatchedProbes(description, 1, ())


def checker(**options: str) -> Checker:
    settings = Options()
    for name, value in options.items():
        settings.set(name, value)
    return Checker(CheckContext(arch_by_name("amd64"), Image(), Probes(), settings))


def check(text: str, by: Checker | None = None) -> Program:
    """One program."""
    by = by or checker()
    unit = parse(text, names=Names(by.is_type), macros=Macros(()), on_pragma=lambda node: set_option(node, Options()))
    return by.check(expand(unit, adds_error_clause=False))


def tag(text: str, by: Checker | None = None) -> str:
    """The tag of its error, or "" if there is none."""
    try:
        check(text, by)
    except DError as error:
        return error.tag
    return ""
