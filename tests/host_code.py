"""`python -m tests.host_code`: assemble the sources in runtime/engine/host; what they name comes from the layouts.

keystone does it, as for users' own code. A host is named as by `platform.machine()`.
"""

import argparse
import ctypes
import re
from pathlib import Path
from typing import Final

from kinst.rewriter.assemble import assemble
from kinst.runtime.engine.host.blocks import BLOCKS
from kinst.runtime.engine.host.breakpoints import BREAKPOINTS
from kinst.runtime.engine.host.budget import ALONE_BEFORE, BUDGET, COUNT, SETTLE, TALLY
from kinst.runtime.engine.host.cover import COVER
from kinst.runtime.engine.host.edges import EDGE_HOOK
from kinst.runtime.engine.host.encodings import ENCODINGS
from kinst.runtime.engine.host.marks import MARKS
from kinst.runtime.engine.host.routine import Routine
from kinst.runtime.engine.host.walks import WALKS
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.errors import UsageError

FOLDER: Final = Path(__file__).parents[1] / "runtime" / "engine" / "host"
ROUTINES: Final = (
    *(ALONE_BEFORE, BLOCKS, BREAKPOINTS, BUDGET, COUNT, COVER, EDGE_HOOK, ENCODINGS, MARKS, SETTLE, TALLY, WALKS),
)
HOSTS: Final = {"x86_64": AMD64, "aarch64": ARM64}
# state.(next, end); sizeof(row); state.next; HASH.1; HASH
_NAMES: Final = re.compile(
    r"\b(?P<pair>[a-z]+)\.\((?P<first>\w+), (?P<second>\w+)\)"
    r"|\bsizeof\((?P<sized>\w+)\)"
    r"|\b(?!b\.)(?P<layout>[a-z]+)\.(?P<field>[a-z]\w*)"  # b.eq is an instruction
    r"|\b(?P<constant>[A-Z][A-Z_]+)(?:\.(?P<quarter>[0-3]))?\b"
)


class NameFault(Exception):
    """A source names what there is not."""


def instructions(routine: Routine, text: str) -> list[str]:
    """The lines of a source with numbers in place of names: labels, which end with a colon, and instructions.

    Raises NameFault if it names what its layouts do not have, or a pair of fields that are not side by side.
    """
    bare = (line.partition("//")[0].strip() for line in text.splitlines())
    return [_NAMES.sub(lambda found: _number(routine, found), line) for line in bare if line]


def assembled(routine: Routine, host: str) -> bytes:
    """What the source of a routine is assembled to. Raises NameFault, or UsageError if keystone refuses it."""
    text = (FOLDER / f"{routine.name}.{host}.s").read_text()
    return assemble(HOSTS[host], "\n".join(instructions(routine, text)), is_plain=True)


def sources() -> list[tuple[Routine, str]]:
    """Each routine with each host that it has a source for."""
    every = ((routine, host) for routine in ROUTINES for host in HOSTS)
    return [(routine, host) for routine, host in every if (FOLDER / f"{routine.name}.{host}.s").is_file()]


def _number(routine: Routine, found: re.Match[str]) -> str:
    match found.lastgroup:
        case "second":
            return hex(_pair(routine, found["pair"], found["first"], found["second"]))
        case "sized":
            return hex(ctypes.sizeof(_layout(routine, found["sized"])))
        case "field":
            return hex(_field(routine, found["layout"], found["field"])[0])
        case _:
            return hex(_constant(routine, found["constant"], found["quarter"]))


def _constant(routine: Routine, name: str, quarter: str | None) -> int:
    if name not in routine.constants:
        raise NameFault(f"{routine.name}: there is no constant {name}")
    value = routine.constants[name]
    return value if quarter is None else value >> 16 * int(quarter) & 0xFFFF


def _layout(routine: Routine, name: str) -> type[ctypes.Structure]:
    if name not in routine.layouts:
        raise NameFault(f"{routine.name}: there is no layout {name}")
    return routine.layouts[name]


def _field(routine: Routine, layout: str, name: str) -> tuple[int, int]:
    """The field's offset and size in bytes."""
    found = getattr(_layout(routine, layout), name, None)
    if found is None:
        raise NameFault(f"{routine.name}: {layout} has no field {name}")
    return found.offset, found.size


def _pair(routine: Routine, layout: str, first: str, second: str) -> int:
    (start, size), (behind, its_size) = (_field(routine, layout, name) for name in (first, second))
    name = f"{layout}.{second}"
    if behind != start + size:
        raise NameFault(f"{routine.name}: {name} is not right behind {layout}.{first}, which is read with it")
    if its_size != size:
        raise NameFault(f"{routine.name}: {name} has not the size of {layout}.{first}, which is read with it")
    return start


def main() -> None:
    """Write what the sources are assembled to."""
    argparse.ArgumentParser(prog="poe host-code", description=(__doc__ or "").partition(": ")[2]).parse_args()
    try:
        made = {f"{routine.name}.{host}.bin": assembled(routine, host) for routine, host in sources()}
    except (NameFault, UsageError) as fault:
        raise SystemExit(f"poe host-code: {fault}") from None
    for name, code in made.items():
        (FOLDER / "assembled" / name).write_bytes(code)


if __name__ == "__main__":
    main()
