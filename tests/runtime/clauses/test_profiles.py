"""Profiles: the bare machine's answers, the choice by evidence, and privilege levels as the machines encode them."""

import pytest

from kinst.runtime.clauses.profiles import BareProfile, Guest, OperatingSystem, profile_for, user_mode
from kinst.runtime.tracing.host.contract import blank_firing
from kinst.runtime.trap.trap import Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.c_types import NoImageTypes
from kinst.targets.errors import KinstError, UsageError
from tests.runtime.unwinding.memories import NoMemory


def firing(machine: str, **registers: int) -> Firing:
    arch = arch_by_name(machine)
    regs = [registers.get(name, 0) for name in arch.registers]
    return blank_firing(TrapFrame(regs, lambda _a, _s: 0, lambda _a, _s, _v: None, lambda _n, _v: None), 2, 2)


def guest(name: str) -> Guest:
    arch = arch_by_name("riscv64")
    return Guest(name, arch, NoImageTypes(), NoMemory(), lambda _firing: True)


def test_a_bare_machine_has_a_thread_a_cpu_and_the_images_name() -> None:
    profile, at = BareProfile("kernel.elf"), firing("riscv64")
    assert profile.thread(at) == 2
    assert {profile.integer(at, name) for name in ("pid", "tid", "uid", "curthread", "errno", "ipl")} == {0}
    assert profile.string(at, "execname") == profile.string(at, "execargs") == b"kernel.elf"
    assert profile.string(at, "zonename") == b""
    assert not profile.is_user(at)


def test_the_first_system_with_evidence_is_taken() -> None:
    mine = BareProfile("mine")
    asked = []

    def absent(guest: Guest) -> None:
        asked.append(guest.name)

    plan9, unix = OperatingSystem("plan9", "_main", absent), OperatingSystem("unix", "main", lambda _guest: mine)
    assert profile_for(guest("kernel"), (plan9, unix, plan9)) is mine
    assert asked == ["kernel"]
    assert profile_for(guest("kernel"), (plan9, unix), "unix") is mine
    assert asked == ["kernel"]
    bare = profile_for(guest("kernel"), (plan9,))
    assert bare.string(firing("riscv64"), "execname") == b"kernel"
    assert bare.is_user(firing("riscv64"))
    assert "no system that is known (plan9) was found in it" in bare.why_not("pid")
    none = profile_for(guest("kernel"), (plan9, unix), "none")
    assert (none.string(firing("riscv64"), "execname"), none.why_not("pid")) == (b"kernel", "")


def test_a_system_that_is_asked_for_must_be_there() -> None:
    plan9 = OperatingSystem("plan9", "_main", lambda _guest: None)
    with pytest.raises(KinstError, match="kernel: --os plan9: not such a kernel: it has no symbol _main"):
        profile_for(guest("kernel"), (plan9,), "plan9")
    with pytest.raises(UsageError, match="--os vms: no such system; there are auto, none, plan9"):
        profile_for(guest("kernel"), (plan9,), "vms")


@pytest.mark.parametrize(
    ("machine", "registers", "expected"),
    [
        ("amd64", {"cs": 0x33}, True),
        ("amd64", {"cs": 0x2B}, True),
        ("amd64", {"cs": 0x08}, False),
        ("amd64", {"cs": 0x10}, False),
        ("arm64", {"pstate": 0x6000_0000}, True),
        ("arm64", {"pstate": 0x6000_03C5}, False),
        ("arm64", {"pstate": 0x3C9}, False),
    ],
)
def test_user_mode_is_in_a_register(machine: str, registers: dict[str, int], expected: bool) -> None:  # noqa: FBT001
    is_user = user_mode(arch_by_name(machine), lambda _register: 1)
    assert is_user(firing(machine, **registers)) is expected


def test_riscv_is_asked_for_its_privilege() -> None:
    levels = [0, 1, 3]
    is_user = user_mode(arch_by_name("riscv64"), lambda register: levels.pop(0) if register == "priv" else 3)
    assert [is_user(firing("riscv64")) for _ in range(3)] == [True, False, False]
