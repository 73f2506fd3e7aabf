"""A board file (TOML) -> the record of the machine. docs/guide/board-files.md describes every key.

A file is checked whole: what is wrong is said in one line with its place, and a key that does not exist is refused with
the nearest one that does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from kinst.targets.errors import UsageError
from kinst.targets.machines.kinds import KINDS, OWN_DEVICES
from kinst.targets.machines.machine import (
    BEHIND,
    Alias,
    CounterSource,
    DeviceFacts,
    MachineFacts,
    NextFacts,
    QemuFacts,
    Space,
    StartFacts,
)
from kinst.targets.machines.registers import RangeFacts, Reads, RegisterFacts, Rule
from kinst.targets.machines.toml_table import Table, nearest, read_toml

PAGE: Final = 4096
LAST_ADDRESS: Final = (1 << 40) - 1  # of physical memory; the tracer's own pages are above
_LEVELS: Final = {"arm64": ("EL1", "EL2", "EL3"), "riscv64": ("S", "M"), "amd64": ()}
_REGISTERS: Final = {"arm64": "x", "riscv64": "a", "amd64": ""}
CPUS: Final = ("arm64", "riscv64")  # of plain boards; the second has riscv,isa in its device trees
_WORDS: Final = ("fdt", "cpu")
_PARAMETERS: Final = "bl-params"
_MOST_CPUS: Final = 8
_COUNTERS: Final = {
    "timer": CounterSource.TIMER_PROPERTY,
    "cpu": CounterSource.CPU_PROPERTY,
    "host": CounterSource.HOST,
}
_DEPTH: Final = 4  # board files that extend each other
_SIZES: Final = (1, 2, 4, 8)
_MOST_SHOWN: Final = 60
_NO_RANGES: Final = frozenset({"unnamed", "svd"})  # keys of [registers]


def read_board(path: Path, shipped: Path, name: str = "") -> MachineFacts:
    """The record of the board that a file describes.

    Args:
        path: the file.
        shipped: the folder of the boards that come with the tool, one of which it may extend.
        name: the machine's name for messages and reports; empty: the file's.

    Raises:
        UsageError: the file cannot be read or is wrong, with line and column.
    """
    table = _extended(read_toml(path), shipped, path.parent)
    facts = _facts(table, name or path.stem, None if path.parent == shipped else path)
    table.end()
    return facts


def _extended(table: Table, shipped: Path, folder: Path, depth: int = 0) -> Table:
    """The table, of a file in `folder`, with what it does not have of the board that it extends."""
    if not table.has("extends"):
        return table
    if depth == _DEPTH:
        raise table.error("extends", f"more than {_DEPTH} files extend each other")
    name = table.text("extends")
    path = folder / name if is_file(name) else shipped / f"{name}.toml"
    if not is_file(name):
        table.text("extends", choices=sorted(one.stem for one in shipped.glob("*.toml")))
    elif not path.is_file():
        raise table.error("extends", f"there is no file {path}")
    base = _extended(read_toml(path), shipped, path.parent, depth + 1)
    values = base.values if path.parent == folder else _from_folder(base.values, path.parent)
    return Table(replace(table.source, base=base.source), _merged(values, table.values), table.keys)


def _from_folder(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values of a file in another folder: files that it names are there."""
    found = dict(values)
    devices, registers = values.get("devices"), values.get("registers")
    if isinstance(devices, dict):
        found["devices"] = {name: _with_path(one, "kind", folder) for name, one in devices.items()}
    if isinstance(registers, dict):
        found["registers"] = _with_path(registers, "svd", folder)
    return found


def _with_path(value: Any, key: str, folder: Path) -> Any:
    """The table with the file that it names by `key` in the folder."""
    name = value.get(key) if isinstance(value, dict) else None
    is_path = isinstance(name, str) and (key != "kind" or ".py:" in name)
    return value | {key: str(folder.absolute() / name)} if is_path and name is not None else value


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over`; tables are merged, and `false` in place of a table removes it. A rule is taken
    as a whole: what belongs to one is wrong in another."""
    found = dict(base)
    for key, value in over.items():
        before = found.get(key)
        if value is False and isinstance(before, dict):
            del found[key]
        elif isinstance(before, dict) and isinstance(value, dict) and "rule" not in value:
            found[key] = _merged(before, value)
        else:
            found[key] = value
    return found


def _facts(table: Table, name: str, file: Path | None) -> MachineFacts:
    table.has("extends")
    table.text("description", "")
    cpu = table.text("cpu", choices=sorted(_LEVELS))
    board = table.text("starts", f"plain-{cpu}")
    if board == "plain-amd64":
        raise table.error("cpu", 'an amd64 board is a PC: write extends = "pc-amd64"')
    base, size, others, aliases = _memory(table)
    devices = {one.name: _device(one, file) for one in table.tables("devices")}
    registers = table.table("registers")
    unnamed = _rule(registers, "unnamed", None) if registers.has("unnamed") else None
    ranges = tuple(_range(registers.table(key)) for key in registers.values if key not in _NO_RANGES)
    _check_places(table, devices, ranges)
    ranges = _named(registers, ranges, unnamed, file)
    loader = table.table("loader")
    facts = MachineFacts(
        name=name,
        arch=cpu,
        ram_base=base,
        ram_size=size,
        devices=devices,
        timebase=table.number("timebase", 62_500_000 if cpu == "arm64" else 10_000_000, low=1000, high=10_000_000_000),
        maximum_cpus=table.number("cpus", 1, low=1, high=_MOST_CPUS),
        qemu=_qemu(table.table("qemu")),
        trampoline_base=None,
        loads_multiboot=loader.flag("multiboot"),
        other_memory=others,
        moves_kernels=loader.flag("moves-kernels"),
        aliases=aliases,
        board=board,
        midr=table.number("midr", high=0xFFFF_FFFF) if cpu == "arm64" and table.has("midr") else None,
        start=_start(table.table("start"), cpu) if board.startswith("plain-") else None,
        ranges=tuple(sorted(ranges, key=lambda one: one.address)),
        unnamed=unnamed,
        file=file,
    )
    loader.end()
    return facts


def _memory(table: Table) -> tuple[int, int, tuple[tuple[int, int], ...], tuple[Alias, ...]]:
    """The base and size of RAM, which is the first range; other ranges; and aliases."""
    places: dict[str, tuple[int, int]] = {}
    aliases = []
    for one in table.tables("memory"):
        address = one.number("address", high=LAST_ADDRESS)
        if one.has("alias"):
            target, whole = places[one.text("alias", choices=tuple(places))]
            offset = one.number("offset", 0, high=whole - PAGE)
            size = one.number("size", whole - offset, low=PAGE, high=whole - offset)
            aliases.append(Alias(address, size, target + offset))
        else:
            size = one.number("size", low=PAGE, high=LAST_ADDRESS + 1 - address)
            places[one.name] = address, size
        if address % PAGE or size % PAGE:
            raise one.error("address", f"its address and size must be multiples of {PAGE}")
        one.end()
    _refuse_overlaps(table, "memory", [*places.values(), *((one.address, one.size) for one in aliases)])
    if not places:
        raise table.error("", "has no memory: add [memory.ram] with address and size")
    (base, size), *others = places.values()
    return base, size, tuple(others), tuple(aliases)


def _refuse_overlaps(table: Table, key: str, places: list[tuple[int, int]]) -> None:
    ordered = sorted(places)
    for (start, size), (following, _) in pairwise(ordered):
        if start + size > following:
            raise table.error(key, f"the ranges at {start:#x} and {following:#x} overlap")


def _device(table: Table, file: Path | None) -> DeviceFacts:
    kind = table.text("kind")
    known = KINDS.get(kind)
    if known is None and not (file is not None and (".py:" in kind or _is_installed(kind))):
        raise table.error("kind", f"{kind!r} does not exist{nearest(kind, tuple(KINDS))}")
    space = Space.PORTS if table.text("space", "memory", ("memory", "ports")) == "ports" else Space.MEMORY
    size = table.number("size", PAGE if known is None else known.size, low=1, high=LAST_ADDRESS)
    address = table.number("address", high=LAST_ADDRESS + 1 - size)
    interrupt = table.number("interrupt", high=1023) if table.has("interrupt") else None
    if known is None:
        fixed = {"kind", "address", "size", "interrupt", "space"}
        properties = {key: table.number(key) for key in table.values if key not in fixed}
    else:
        properties = {key: table.number(key, default) for key, default in known.properties.items()}
    table.end()
    return DeviceFacts(kind, address, size, interrupt, space, properties)


def _is_installed(kind: str) -> bool:
    """Whether an installed package has such devices."""
    from importlib.metadata import entry_points  # slow, and few boards need it

    return bool(entry_points(group=OWN_DEVICES, name=kind))


def _check_places(table: Table, devices: Mapping[str, DeviceFacts], ranges: tuple[RangeFacts, ...]) -> None:
    _refuse_overlaps(
        table, "devices", [(one.address, one.size) for one in devices.values() if one.space is Space.MEMORY]
    )
    _refuse_overlaps(table, "registers", [(one.address, one.size) for one in ranges])


def _start(table: Table, cpu: str) -> StartFacts:
    """The state at the start; only for boards without a start of their own."""
    level = table.text("level", "EL1" if cpu == "arm64" else "M", _LEVELS[cpu])
    entry = table.number("entry") if table.has("entry") else None
    tree: int | str | None = None
    if table.has("device-tree"):
        is_text = isinstance(table.value("device-tree"), str)
        tree = table.text("device-tree", choices=(BEHIND,)) if is_text else table.number("device-tree")
    following = _next(table.table("bl33")) if level == "EL3" else None
    registers = _arguments(table, _REGISTERS[cpu], (*_WORDS, _PARAMETERS) if level == "EL3" else _WORDS)
    table.end()
    return StartFacts(level, registers, entry, tree, following)


def _next(table: Table) -> NextFacts:
    entry = table.number("entry") if table.has("entry") else None
    facts = NextFacts(entry, table.text("level", "EL2", ("EL1", "EL2")), _arguments(table, "x", _WORDS))
    table.end()
    return facts


def _arguments(table: Table, prefix: str, words: tuple[str, ...]) -> dict[str, int | str]:
    """The general registers that a table names: numbers, or words for what is known later."""
    registers: dict[str, int | str] = {}
    table.has(f"{prefix}0")  # for the hint
    for key in table.values:
        if key.startswith(prefix) and key[1:].isdigit() and int(key[1:]) < 8:
            is_text = isinstance(table.value(key), str)
            registers[key] = table.text(key, choices=words) if is_text else table.number(key)
    return registers


def _qemu(table: Table) -> QemuFacts:
    counter = _COUNTERS[table.text("counter", "cpu", tuple(_COUNTERS))]
    facts = QemuFacts(
        table.texts("words"), counter, table.flag("runs-from-zero"), table.number("firmware-size", 0, high=1 << 40)
    )
    table.end()
    return facts


# -- registers --------------------------------------------------------------------------------------------------------


def _range(table: Table) -> RangeFacts:
    address = table.number("address", high=LAST_ADDRESS)
    size = table.number("size", PAGE, low=1, high=LAST_ADDRESS + 1 - address)
    rule = _rule(table, "reads", Rule())
    registers = tuple(sorted(_registers(table, size), key=lambda one: one.offset))
    for one, following in pairwise(registers):
        if one.offset + one.size > following.offset:
            raise table.error(following.name, f"overlaps {one.name}, at offset {one.offset:#x}")
    table.end()
    return RangeFacts(table.name, address, size, rule, registers)


def _named(
    table: Table, ranges: tuple[RangeFacts, ...], unnamed: Rule | None, file: Path | None
) -> tuple[RangeFacts, ...]:
    """The ranges with the names that an SVD file has for their registers."""
    if not table.has("svd"):
        return ranges
    from kinst.targets.machines.named_registers import with_names  # XML, which few boards need
    from kinst.targets.machines.svd import read_svd

    folder = Path() if file is None else file.parent
    try:
        names = read_svd(folder / table.text("svd"))
    except (UsageError, ValueError) as error:  # a name with a NUL
        raise table.error("svd", str(error)) from None
    return with_names(ranges, unnamed, names, LAST_ADDRESS)


def _registers(table: Table, size: int) -> Iterator[RegisterFacts]:
    """The registers of a range: the tables in it."""
    for key, value in table.values.items():
        if isinstance(value, dict) and key != "reads":
            one = table.table(key)
            table.has(key)
            width = one.number("size", 4)
            if width not in _SIZES:
                raise one.error("size", f"is {width}, and must be 1, 2, 4 or 8")
            offset = one.number("offset", high=size - 1)
            rule = _rule(one, "reads", Rule())
            if rule.kind is Reads.FAULT:
                raise one.error("reads", '"fault" is for a range: memory is protected by the page')
            one.end()
            yield RegisterFacts(key, offset, width, rule)


def _rule(table: Table, key: str, default: Rule | None) -> Rule:
    """What reads give: a number, a list, "last", "fault", or a table with `rule`."""
    if default is not None and not table.has(key):
        return default
    value = table.value(key)
    match value:
        case bool():
            pass
        case int() if value >= 0:
            return Rule(Reads.CONSTANT, table.number(key))
        case "last" | "fault":
            return Rule(Reads(value))
        case [_, *_] if all(type(one) is int and 0 <= one < 1 << 64 for one in value):
            return Rule(Reads.LIST, values=tuple(value))
        case dict():
            return _detailed(table.table(key))
    raise table.error(key, 'must be a number, "last", "fault", a list of numbers, or { rule = "last", ... }')


def _detailed(table: Table) -> Rule:
    kinds = [kind.value for kind in Reads if kind not in (Reads.LIST, Reads.FAULT)]
    kind = Reads(table.text("rule", choices=kinds))
    value = table.number("value", 0)
    match kind:
        case Reads.LAST:
            bits, clear = table.number("set", 0), table.number("clear", 0)
            after, toggle = table.number("after", 0), table.number("toggle", 0)
            rule = Rule(kind, value, bits=bits, clear=clear, toggle=toggle, after=after)
        case Reads.TOGGLE:
            rule = Rule(kind, value, bits=table.number("bits", 1))
        case Reads.COUNT:
            rule = Rule(kind, value, step=table.number("step", 1))
        case _:
            rule = Rule(kind, value)
    table.end()
    return rule


def extended_by(path: Path) -> str | None:
    """What a board file says that it extends; None: nothing. Raises UsageError: it cannot be read."""
    name = read_toml(path).values.get("extends")
    return name if isinstance(name, str) else None


def is_file(board: str) -> bool:
    """Whether what names a board is a file and not the name of one that ships."""
    return "/" in board or board.endswith(".toml")


def refuse_missing(board: str, names: tuple[str, ...]) -> UsageError:
    """The error for a name that no board has."""
    return UsageError(f"{board[:_MOST_SHOWN]}: no such machine; there are {', '.join(names)}, or a file: ./BOARD.toml")
