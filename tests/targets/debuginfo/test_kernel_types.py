"""Types of real kernels against gdb: sizes, members, enumerators of a seeded draw, from .BTF and from DWARF alone."""

import json
import os
import random
import shutil
import struct
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from kinst.targets.c_types import Aggregate, CType, EnumType, Function, Pointer, size_of, strip
from kinst.targets.debuginfo.btf import btf_types
from kinst.targets.debuginfo.dwarf.entry_search import DebugInfo
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.types import DwarfTypes
from kinst.targets.elf.file import ElfFile, open_elf
from kinst.targets.elf.sections import content
from tests.gated import long_after_first
from tests.images import CACHE

MACHINES: Final = ("amd64", "arm64", "riscv64")
KEYWORDS: Final = {4: "struct ", 5: "union ", 6: "enum ", 19: "enum ", 8: ""}  # by kind of a BTF record
WORDS: Final = {  # that follow, and for each of `vlen` more
    1: (1, 0), 3: (3, 0), 4: (0, 3), 5: (0, 3), 6: (0, 2), 13: (0, 2), 14: (1, 0), 15: (0, 3), 17: (1, 0), 19: (0, 3),
}  # fmt: skip
DRAWN: Final = {"struct ": 40, "union ": 6, "enum ": 15, "": 25}
ALWAYS: Final = (
    "struct task_struct",
    "struct file",
    "struct dentry",
    "struct sk_buff",
    "enum pid_type",
    "irq_handler_t",
)


class Types(Protocol):
    """Who can be asked."""

    def type_named(self, name: str) -> CType | None: ...


@cache
def kernel(machine: str) -> ElfFile:
    path = CACHE / f"linux-{machine}" / "image.elf"
    if not path.exists():
        pytest.skip(f"{path} is not in the cache")
    return open_elf(path)


@cache
def names(machine: str) -> tuple[str, ...]:
    """A draw of what only one type is called: of namesakes gdb may mean another one."""
    section = next(one for one in kernel(machine).sections if one.name == ".BTF")
    data = content(kernel(machine).data, section).tobytes()
    head, start, size, strings = struct.unpack_from("<4xIIII", data)
    words, at, found = struct.unpack_from(f"<{size // 4}I", data, head + start), 0, Counter[str]()
    while at < len(words):
        name, info = words[at : at + 2]
        kind, (fixed, each) = info >> 24 & 31, WORDS.get(info >> 24 & 31, (0, 0))
        if kind in KEYWORDS and name:
            begin = head + strings + name
            found[KEYWORDS[kind] + data[begin : data.index(b"\0", begin)].decode()] += 1
        at += 3 + fixed + each * (info & 0xFFFF)
    choose, drawn = random.Random(4), list(ALWAYS)
    for keyword, count in DRAWN.items():
        once = (name for name in found if found[name] == 1)
        same = [name for name in once if (name.startswith(keyword) if keyword else " " not in name)]
        drawn += choose.sample(same, count)
    return tuple(dict.fromkeys(drawn))


@cache
def reference(machine: str) -> dict[str, Any]:
    """What gdb answers."""
    debugger = shutil.which("gdb-multiarch") or shutil.which("gdb")
    if debugger is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), "no gdb"
        pytest.skip("no gdb")
    request = Path(os.environ.get("TMPDIR", "/tmp")) / f"kinst-types-{os.getpid()}.json"
    request.write_text(json.dumps(names(machine)))
    command = [debugger, "-nx", "-batch", "-x", str(Path(__file__).with_name("debugger.py")), str(kernel(machine).path)]
    environment = {**os.environ, "KINST_REQUEST": str(request)}
    try:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    finally:
        request.unlink()
    answer: dict[str, Any] = json.loads(result.stdout[result.stdout.index('{"') :])
    return {name: found for name, found in answer.items() if found is not None}


def sources(machine: str) -> dict[str, Types]:
    elf = kernel(machine)
    compact = btf_types(elf, "vmlinux")
    assert compact is not None
    return {"BTF": compact, "DWARF": DwarfTypes(DebugInfo(DebugSections(elf)), "vmlinux")}


def described(kind: CType) -> dict[str, Any]:
    """Our type in the words of the reference."""
    plain = strip(kind)
    if isinstance(plain, EnumType) and kind is plain:
        return {"size": plain.base.size, "values": [list(one) for one in plain.enumerators]}
    if isinstance(plain, Aggregate) and kind is plain:
        members = [
            [one.name, 8 * one.offset + one.bit_offset, one.bit_size or 0, size_of(one.type) or 0]
            for one in plain.members or ()
        ]
        return {"size": plain.size, "members": members}
    target = strip(plain.target) if isinstance(plain, Pointer) else None
    parameters = len(target.parameters or ()) if isinstance(target, Function) else None
    return {"size": size_of(kind) or 0, "parameters": parameters}


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    """Without what is a matter of taste: the type of a bit-field's storage unit."""
    if "members" not in found:
        return found
    return {**found, "members": [[*one[:3], None if one[2] else one[3]] for one in found["members"]]}


@pytest.mark.parametrize("source", long_after_first(["BTF", "DWARF"]))
@pytest.mark.parametrize("machine", long_after_first(MACHINES))
def test_types_are_those_that_gdb_reads(machine: str, source: str) -> None:
    expected, types = reference(machine), sources(machine)[source]
    assert len(expected) > 85 and {*ALWAYS} <= {*expected}
    found = {name: types.type_named(name) for name in expected}
    assert [name for name, kind in found.items() if kind is None] == []
    ours = {name: comparable(described(kind)) for name, kind in found.items() if kind is not None}
    assert ours == {name: comparable(answer) for name, answer in expected.items()}
    assert sum(len(one.get("members", ())) for one in expected.values()) > 400
