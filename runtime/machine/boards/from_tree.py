"""A device tree -> a first board file for it: memory, UART, interrupt controller and timers as devices, and everything
else that has registers as a named range (Devicetree Specification 0.4, chapters 2 and 3).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from kinst.runtime.machine.devices.fdt import Node
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.targets.errors import MachineError
from kinst.targets.machines.board_file import CPUS
from kinst.targets.machines.kinds import KINDS
from kinst.targets.values import dataclass

_WIDE: Final = frozenset({"ti,am654-uart", "mediatek,mt6577-uart"})  # 16550s in words of 32 bits
_IMPLIED: Final = {"reg-shift": 2, "reg-io-width": 4}  # of these: their trees leave it to the driver
_KINDS: Final = {
    "arm,pl011": "pl011",
    "brcm,bcm2835-pl011": "pl011",
    "brcm,bcm2835-aux-uart": "bcm2835-aux-uart",
    "snps,dw-apb-uart": "dw-apb-uart",
    "ns16550a": "ns16550",
    "ns16550": "ns16550",
    "ti,am654-uart": "ns16550",
    "mediatek,mt6577-uart": "ns16550",
    "nvidia,tegra20-uart": "ns16550",
    "cdns,uart-r1p12": "cdns-uart",
    "xlnx,xuartps": "cdns-uart",
    "qcom,geni-debug-uart": "geni-uart",
    "qcom,geni-uart": "geni-uart",
    "qcom,msm-uartdm": "msm-uartdm",
    "samsung,exynos4210-uart": "exynos-uart",
    "samsung,exynos5433-uart": "exynos-uart",
    "samsung,exynos850-uart": "exynos-uart",
    "fsl,imx6q-uart": "imx-uart",
    "fsl,imx21-uart": "imx-uart",
    "fsl,imx7ulp-lpuart": "lpuart",
    "amlogic,meson-uart": "meson-uart",
    "amlogic,meson-gx-uart": "meson-uart",
    "marvell,armada-3700-uart": "mvebu-uart",
    "sifive,uart0": "sifive-uart",
    "arm,gic-400": "gicv2",
    "arm,cortex-a15-gic": "gicv2",
    "arm,cortex-a7-gic": "gicv2",
    "arm,gic-v3": "gicv3",
    "sifive,plic-1.0.0": "plic",
    "riscv,plic0": "plic",
    "sifive,clint0": "clint",
    "riscv,clint0": "clint",
    "arm,sp804": "sp804",
    "arm,pl031": "pl031",
    "arm,pl061": "pl061",
    "google,goldfish-rtc": "goldfish-rtc",
    "sifive,test0": "sifive-test",
    "brcm,bcm2835-mbox": "bcm2835-mailbox",
    "brcm,bcm2835-system-timer": "bcm2835-timer",
    "brcm,bcm2835-gpio": "bcm2835-gpio",
    "brcm,bcm2835-sdhost": "bcm2835-sdhost",
    "brcm,bcm2835-sdhci": "sdhci",
    "brcm,bcm2711-emmc2": "sdhci",
    "brcm,sdhci-iproc": "sdhci",
    "arasan,sdhci-4.9a": "sdhci",
    "arasan,sdhci-5.1": "sdhci",
    "arasan,sdhci-8.9a": "sdhci",
    "snps,dwcmshc-sdhci": "sdhci",
    "brcm,bcm2835-usb": "dwc2",
    "snps,dwc2": "dwc2",
}
_CORES: Final = {  # MIDR_EL1 of CPUs, by their manuals: implementer, variant, architecture, part, revision
    "arm,cortex-a35": 0x410F_D042,
    "arm,cortex-a53": 0x410F_D034,
    "arm,cortex-a55": 0x412F_D050,
    "arm,cortex-a57": 0x411F_D070,
    "arm,cortex-a72": 0x410F_D083,
    "arm,cortex-a73": 0x410F_D092,
    "arm,cortex-a75": 0x413F_D0A1,
    "arm,cortex-a76": 0x414F_D0B1,
    "arm,cortex-a78": 0x411F_D410,
}
_UARTS: Final = frozenset(kind for kind in _KINDS.values() if kind == "pl011" or "uart" in kind or kind == "ns16550")
_CARD_HOSTS: Final = frozenset(kind for kind in _KINDS.values() if "socket" in KINDS[kind].properties)
_PARTS: Final = {"gicv2": "gicv2-cpu", "gicv3": "gicv3-redistributors"}  # by their second range
_LAST: Final = (1 << 40) - 1
_PAGE: Final = 4096
_MOST_CPUS: Final = 8
_UNKNOWN_SIZE: Final = 512 << 20  # of RAM, where an earlier stage writes its size into the tree
_GRAIN: Final = 1 << 30
_MOST_ROWS: Final = 4096


@dataclass(frozen=True, slots=True)
class _Place:
    """A range of physical addresses that a node has."""

    node: Node
    path: str
    index: int  # of the range among the node's
    address: int
    size: int

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(slots=True)
class _Found:
    """What was found in a tree, before it is written."""

    places: list[_Place] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)
    cpus: list[Node] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)


def board_from(blob: bytes, name: str) -> str:
    """The text of a board file for the board that a flattened device tree describes. `name`: the tree's, for the text.

    Raises:
        MachineError: the tree is damaged, or describes no board of 64 bits.
    """
    root = unflatten(blob).root
    found = _Found()
    _search(root, "", _cells(root), ((0, 0, _LAST + 1),), found)
    if not found.cpus:
        raise MachineError("it has no CPUs: it describes no board")
    return "\n".join(_lines(root, found, name)) + "\n"


# -- reading the tree -------------------------------------------------------------------------------------------------


def _number(node: Node, name: str, default: int) -> int:
    value = node.properties.get(name)
    return int.from_bytes(value, "big") if isinstance(value, bytes) and len(value) in (4, 8) else default


def _texts(node: Node, name: str) -> list[str]:
    value = node.properties.get(name, b"")
    assert isinstance(value, bytes), "the reader gives bytes"
    return [text.decode("ascii", "replace") for text in value.split(b"\0") if text]


def _cells(node: Node) -> tuple[int, int]:
    """The cells of an address and of a size in a node's children."""
    address, size = _number(node, "#address-cells", 2), _number(node, "#size-cells", 1)
    return (address, size) if address <= 4 and size <= 4 else (0, 0)


def _rows(value: object, *widths: int) -> Iterator[tuple[int, ...]]:
    """Rows of numbers of so many cells each."""
    size = 4 * sum(widths)
    if not isinstance(value, bytes) or not size:
        return
    for start in range(0, min(len(value) - size + 1, _MOST_ROWS * size), size):
        row, at = [], start
        for width in widths:
            row.append(int.from_bytes(value[at : at + 4 * width], "big"))
            at += 4 * width
        yield tuple(row)


_Ranges = Sequence[tuple[int, int, int]]  # (address on the bus, physical address, size)


def _search(node: Node, path: str, cells: tuple[int, int], ranges: _Ranges, found: _Found) -> None:
    """Note what a node and those below it have. `cells` are those of its children, `ranges` of its bus."""
    for child in node.children:
        here = f"{path}/{child.name}"
        found.nodes[here] = child
        kind = _texts(child, "device_type")
        if kind == ["cpu"]:
            found.cpus.append(child)
            continue
        for index, (bus, size) in enumerate(_rows(child.properties.get("reg"), *cells) if all(cells) else ()):
            address = _translated(bus, ranges)
            if address is None:
                continue
            if kind == ["memory"]:
                found.memory.append((address, size))
            elif size and address + size <= _LAST and not here.startswith("/reserved-memory"):
                found.places.append(_Place(child, here, index, address, size))
        below = _below(child, cells[0], ranges)
        _search(child, here, _cells(child), below, found)


def _translated(address: int, ranges: _Ranges) -> int | None:
    return next((to + address - start for start, to, size in ranges if 0 <= address - start < size), None)


def _below(node: Node, outer: int, ranges: _Ranges) -> _Ranges:
    """The ranges of a node's children; none if they cannot be reached from here."""
    value = node.properties.get("ranges")
    if value == b"":
        return ranges
    address, size = _cells(node)
    if address > 2:  # PCI: its first cell says which space
        return ()
    rows = []
    for start, to, length in _rows(value, address, outer, size):
        physical = _translated(to, ranges)
        if physical is not None:
            rows.append((start, physical, length))
    return rows


# -- writing the file -------------------------------------------------------------------------------------------------


def _lines(root: Node, found: _Found, name: str) -> Iterator[str]:
    is_riscv = "riscv,isa" in found.cpus[0].properties or "riscv" in _texts(found.cpus[0], "compatible")
    model = re.sub(r"[^ -~]|[\"\\]", "?", (_texts(root, "model") or ["a board"])[0])
    yield f"# Made of {name} by kinst-run --board-from. Give the tree itself to the guest with --dtb."
    yield f'description = "{model}"'
    yield f'cpu = "{CPUS[is_riscv]}"'
    yield f"cpus = {min(len(found.cpus), _MOST_CPUS)}"
    yield from _timebase(found, is_riscv=is_riscv)
    cores = [text for text in _texts(found.cpus[0], "compatible") if text in _CORES]
    yield from (f"midr = {_hex(_CORES[core])} # {core}" for core in cores[:1])
    yield from ("", "[start]")
    yield from _start(found, is_riscv=is_riscv)
    memory = [*_memory(found)]
    for number, (address, size) in enumerate(memory):
        yield from ("", f"[memory.ram{number or ''}]", f"address = {_hex(address)}", f"size = {_hex(size)}")
    taken = [range(address, address + size) for address, size in memory]
    for number, one in enumerate(_chip_memory(found, taken)):
        yield from ("", f"[memory.sram{number or ''}]", f"address = {_hex(one.start)}", f"size = {_hex(len(one))}")
        taken.append(one)
    yield from _devices(root, found, taken, is_riscv=is_riscv)
    yield from (
        "",
        "[registers]",
        'unnamed = "last" # what was written last; "fault" to find what is missing',
    )
    yield from _ranges(found, taken)


def _timebase(found: _Found, *, is_riscv: bool) -> Iterator[str]:
    if is_riscv:
        cpus = found.nodes.get("/cpus")
        value = 0 if cpus is None else _number(cpus, "timebase-frequency", 0)
    else:
        timers = [node for node in found.nodes.values() if "arm,armv8-timer" in _texts(node, "compatible")]
        value = next((_number(node, "clock-frequency", 0) for node in timers), 0)
    if 1000 <= value <= 10_000_000_000:
        yield f"timebase = {value}"
    elif not is_riscv:
        yield "timebase = 24_000_000 # a guess: firmware writes it into CNTFRQ_EL0"


def _start(found: _Found, *, is_riscv: bool) -> Iterator[str]:
    if is_riscv:
        yield from ('level = "S" # "M" for firmware', 'a0 = "cpu"', 'a1 = "fdt"')
        yield '# device-tree = "behind" # for a U-Boot that looks for its tree behind its own bytes'
        return
    psci = found.nodes.get("/psci")
    is_hypervised = psci is not None and _texts(psci, "method") == ["hvc"]
    yield f'level = "{"EL1" if is_hypervised else "EL2"}" # "EL3" for what a boot ROM starts, as TF-A and SPL'
    yield 'x0 = "fdt"'


def _memory(found: _Found) -> Iterator[tuple[int, int]]:
    """The ranges of RAM, in whole pages and without overlaps, in order. Trees say that there is RAM where devices are:
    firmware cuts it."""
    end = 0
    for address, size in sorted(found.memory) or [(_guess(found), 0)]:
        start = max(-(-address // _PAGE) * _PAGE, end)
        stop = min(address + (size or _UNKNOWN_SIZE) & -_PAGE, _LAST + 1)
        devices = (one.address & -_PAGE for one in found.places if start + stop <= 2 * one.address)
        stop = min([stop, *devices])
        if start < stop:
            yield start, stop - start
            end = stop


def _chip_memory(found: _Found, taken: list[range]) -> Iterator[range]:
    """Memory that is not RAM, in whole pages."""
    for one in found.places:
        where = range(one.address, one.end & -_PAGE)
        is_memory = "mmio-sram" in _texts(one.node, "compatible") and not one.address % _PAGE and len(where)
        if is_memory and not _overlaps(one, taken):
            yield where


def _guess(found: _Found) -> int:
    """Where RAM begins if the tree leaves it to firmware: at the first GiB where no device is."""
    for start in range(0, _LAST, _GRAIN):
        wanted = range(start, start + _UNKNOWN_SIZE)
        if not any(one.address < wanted.stop and wanted.start < one.end for one in found.places):
            return start
    return 0


def _console(root: Node, found: _Found) -> str:
    """The path of the node that /chosen says is the console; empty if it says nothing."""
    chosen = next((node for node in root.children if node.name == "chosen"), None)
    text = (_texts(chosen, "stdout-path") or [""])[0].partition(":")[0] if chosen is not None else ""
    aliases = found.nodes.get("/aliases")
    if text and not text.startswith("/") and aliases is not None:
        text = (_texts(aliases, text) or [""])[0]
    return text


def _devices(root: Node, found: _Found, taken: list[range], *, is_riscv: bool) -> Iterator[str]:
    console = _console(root, found)
    if console and not any(_kind(one) in _UARTS for one in found.places if one.path == console):
        compatible = ", ".join(_texts(found.nodes[console], "compatible")) if console in found.nodes else "not there"
        yield from ("", f"# The console is {_comment(console)} ({_comment(compatible)}), which nobody models.")
    if not console:
        console = next((one.path for one in found.places if _kind(one) in _UARTS), "")
    names: set[str] = set()
    sockets = _sockets(found)
    for one in sorted(found.places, key=lambda place: place.path != console):  # the console first, then as they come
        kind = _kind(one)
        if not kind or one.index > (kind in _PARTS):
            continue
        if one.index == 1:
            kind = _PARTS[kind]
        whole = _window(one, kind) if kind in _UARTS else one
        if _overlaps(whole, taken):
            continue
        taken.append(range(whole.address, whole.end))
        name = _unique("console" if one.path == console else _name(one), one, names)
        is_other = kind in _UARTS and one.path != console
        comment = " # what it sends is printed, too: firmware may use another UART than Linux" if is_other else ""
        yield from ("", f"[devices.{name}]{comment}", f'kind = "{kind}"', f"address = {_hex(one.address)}")
        yield from _details(one, kind, is_riscv=is_riscv)
        yield from (f"socket = {sockets[one.path]}" for _ in range(sockets.get(one.path, 0) > 0))


def _sockets(found: _Found) -> dict[str, int]:
    """The socket of each host of memory cards, by its path: cards before what is soldered (a radio, as its power
    sequence says) and what is switched off. Pins of the BCM2835 lead to one socket."""
    hosts = [one for one in found.places if _kind(one) in _CARD_HOSTS and not one.index]
    if any(_kind(one) == "bcm2835-gpio" for one in hosts):
        return dict.fromkeys((one.path for one in hosts), 0)
    hosts.sort(key=lambda one: (_texts(one.node, "status") == ["disabled"], "mmc-pwrseq" in one.node.properties))
    return {one.path: number for number, one in enumerate(hosts)}


def _window(one: _Place, kind: str) -> _Place:
    """A UART's place with all that our device answers: some trees have several in a page."""
    return replace(one, size=max(one.size, KINDS[kind].size or 0))


def _details(one: _Place, kind: str, *, is_riscv: bool) -> Iterator[str]:
    yield f"size = {_hex(one.size)}"
    value = one.node.properties.get("interrupts", b"")
    assert isinstance(value, bytes), "the reader gives bytes"
    cells = [int.from_bytes(value[at : at + 4], "big") for at in range(0, len(value) - 3, 4)]
    is_shared = len(cells) >= 3 and cells[0] == 0
    number = cells[0] if is_riscv and cells else cells[1] if is_shared else None
    is_controller = kind in (*_PARTS, *_PARTS.values(), "plic", "clint")
    if number is not None and number < 1024 and not is_controller:
        yield f"interrupt = {number}"
    if kind in ("ns16550", "dw-apb-uart"):
        for name, default in (("reg-shift", 0), ("reg-io-width", 1)):
            implied = _IMPLIED.get(name, default) if not _WIDE.isdisjoint(_texts(one.node, "compatible")) else default
            if (given := _number(one.node, name, implied)) != default and given <= 8:
                yield f"{name} = {given}"
    if kind == "plic":
        yield f"sources = {min(_number(one.node, 'riscv,ndev', 127), 1023) + 1}"


def _ranges(found: _Found, taken: list[range]) -> Iterator[str]:
    names: set[str] = {"unnamed"}
    for one in sorted(found.places, key=lambda place: (place.address, place.size)):
        if _overlaps(one, taken):
            continue
        taken.append(range(one.address, one.end))
        compatible = (_texts(one.node, "compatible") or [""])[0]
        comment = f" # {_comment(compatible)}" if compatible else ""
        yield from ("", f"[registers.{_unique(_name(one), one, names)}]{comment}")
        yield from (f"address = {_hex(one.address)}", f"size = {_hex(one.size)}")


def _kind(one: _Place) -> str:
    return next((_KINDS[text] for text in _texts(one.node, "compatible") if text in _KINDS), "")


def _overlaps(one: _Place, taken: list[range]) -> bool:
    return any(one.address < other.stop and other.start < one.end for other in taken)


def _name(one: _Place) -> str:
    """A node's name without its address; of its further ranges, with the name that the tree has for them."""
    names = _texts(one.node, "reg-names")
    part = f"-{names[one.index]}" if one.index and one.index < len(names) else f"-{one.index}" if one.index else ""
    return re.sub(r"[^A-Za-z0-9_-]", "-", one.node.name.partition("@")[0] + part) or "node"


def _unique(name: str, one: _Place, names: set[str]) -> str:
    found = name if name not in names else f"{name}-{one.address:x}"
    while found in names:
        found += "-"
    names.add(found)
    return found


def _comment(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)[:80]


def _hex(value: int) -> str:
    digits = f"{value:x}"
    groups = [digits[max(0, end - 4) : end] for end in range(len(digits), 0, -4)]
    return "0x" + "_".join(reversed(groups))
