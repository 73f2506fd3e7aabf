"""Probe names -> sites: matching, entry and return rules, and a message of its own for every way to go wrong."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.naming.resolve import Resolution, resolve
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.program import Program
from kinst.targets.errors import ProbeError, ProbeNameError
from kinst.targets.functions.found import Functions
from kinst.targets.instruction import DEFERRED, Reason
from kinst.targets.manifest.packed import Manifest
from kinst.targets.probe import parse_probe_name
from tests.rewriter.programs import DATA, FUNCTIONS, TEXT, program, small
from tests.writers.elf import Symbol


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """With an alias, two statics of one name, and DTrace's dtrace_probe."""
    functions = {**FUNCTIONS, "static_one": "nop; ret", "dtrace_probe": "ret", "unnamed": "nop; nop; ret"}
    image = small(functions=functions)
    extra = (Symbol("pmap_fault", image.address("vm_fault"), image.sizes["vm_fault"]),)
    return program(tmp_path_factory.mktemp("kernel"), small(functions=functions, extra=extra))


def resolved(kernel: Program, *specs: str, include_excluded: bool = False) -> Resolution:
    return resolve(kernel, [parse_probe_name(spec) for spec in specs], include_excluded=include_excluded)


def probes(kernel: Program, *specs: str, include_excluded: bool = False) -> list[str]:
    """The probes that names come to, without provider and module; every name must come to something."""
    resolution = resolved(kernel, *specs, include_excluded=include_excluded)
    assert [outcome.error for outcome in resolution.outcomes] == [None] * len(specs)
    manifest, _ = manifest_of(resolution)
    return [manifest.probe_name(row).split(":", 2)[2] for row in range(len(manifest.probes))]


def sites(kernel: Program, spec: str) -> list[str]:
    """``function+offset`` of the sites that a name comes to."""
    manifest, _ = manifest_of(resolved(kernel, spec))
    return [place(manifest, row) for row in range(len(manifest.sites))]


def deferred(kernel: Program, spec: str) -> list[str]:
    """Those of the sites at which nothing is patched."""
    manifest, _ = manifest_of(resolved(kernel, spec))
    return [place(manifest, row) for row in np.flatnonzero(manifest.is_deferred).tolist()]


def place(manifest: Manifest, row: int) -> str:
    function = int(manifest.sites["function"][row])
    offset = int(manifest.sites["address"][row]) - int(manifest.functions["address"][function])
    return f"{manifest.function_name(function)}+{offset}"


def error_of(kernel: Program, spec: str) -> str:
    outcome = resolved(kernel, spec).outcomes[0]
    assert isinstance(outcome.error, ProbeError | ProbeNameError)
    assert not len(outcome.choice)
    return str(outcome.error)


def test_an_empty_name_is_every_instruction_that_can_be_probed(kernel: Program) -> None:
    assert probes(kernel, "kinst::vm_fault:") == [f"vm_fault:{offset}" for offset in (4, 5, 8, 10, 12, 13, 14)]
    outcome = resolved(kernel, "kinst::vm_fault:").outcomes[0]
    assert outcome.refusals.counts() == {Reason.LANDING_PAD: 1}
    assert "1 of 8 refused: 1 a branch-target landing pad" in outcome.note()


@pytest.mark.parametrize("name", ["10", "0xa", "0XA", "010"])
def test_a_number_is_one_offset(kernel: Program, name: str) -> None:
    assert probes(kernel, f"kinst::vm_fault:{name}") == ["vm_fault:10"]


def test_a_glob_in_the_name_matches_the_decimal_offset(kernel: Program) -> None:
    assert probes(kernel, "kinst::vm_fault:1*") == ["vm_fault:10", "vm_fault:12", "vm_fault:13", "vm_fault:14"]
    assert probes(kernel, "kinst::vm_fault:?") == ["vm_fault:4", "vm_fault:5", "vm_fault:8"]


def test_a_glob_in_the_function_field_takes_all_that_match(kernel: Program) -> None:
    assert probes(kernel, "fbt::vm_*:return") == ["vm_fault:return"]
    assert probes(kernel, "kinst::helper*:0") == ["helper:0", "helper.cold:0"]


def test_all_of_everything(kernel: Program) -> None:
    outcome = resolved(kernel, "kinst:::").outcomes[0]
    assert outcome.total == len(resolved(kernel, "kinst:::").code.instructions)
    assert outcome.error is None


def test_the_order_of_probes_is_function_then_kind_then_offset(kernel: Program) -> None:
    expected = ["helper.cold:0", "helper.cold:1", "helper.cold:entry", "helper.cold:return", "spin:entry"]
    assert probes(kernel, "fbt::spin:entry", "fbt::helper.cold:", "kinst::helper.cold:") == expected


def test_an_empty_or_globbed_provider_is_both_where_the_name_fits(kernel: Program) -> None:
    assert probes(kernel, "helper.cold:entry") == ["helper.cold:entry"]
    assert probes(kernel, "::helper.cold:1") == ["helper.cold:1"]
    assert probes(kernel, "*::helper.cold:") == [
        "helper.cold:0",
        "helper.cold:1",
        "helper.cold:entry",
        "helper.cold:return",
    ]


def test_a_name_given_twice_is_one_probe(kernel: Program) -> None:
    assert probes(kernel, "kinst::spin:0", "kinst::spin:0", "kinst::spin:") == ["spin:0", "spin:2"]


def test_an_alias_names_the_probe_only_if_the_primary_name_does_not_match(kernel: Program) -> None:
    aliases = {kernel.functions.names[0], *kernel.functions.aliases[0]}
    assert aliases == {"vm_fault", "pmap_fault"}
    primary, alias = kernel.functions.names[0], kernel.functions.aliases[0][0]
    assert probes(kernel, f"kinst::{alias}:4") == [f"{alias}:4"]
    assert probes(kernel, f"kinst::{primary}:4") == [f"{primary}:4"]
    assert probes(kernel, "kinst::*_fault:4") == [f"{primary}:4"]
    assert probes(kernel, f"kinst::{primary}:4", f"kinst::{alias}:4") == [f"{primary}:4", f"{alias}:4"]
    assert len(manifest_of(resolved(kernel, f"kinst::{primary}:4", f"kinst::{alias}:4"))[0].sites) == 1


@pytest.mark.parametrize("module", ["small", "kernel", "small.ko", "sm*", ""])
def test_the_module_is_the_image_or_kernel(kernel: Program, module: str) -> None:
    assert probes(kernel, f"kinst:{module}:spin:0") == ["spin:0"]


def test_entry_steps_over_a_landing_pad(kernel: Program) -> None:
    assert sites(kernel, "fbt::vm_fault:entry") == ["vm_fault+4"]
    assert sites(kernel, "fbt::spin:entry") == ["spin+0"]


def test_entry_steps_over_the_room_for_a_tracer_and_is_deferred_where_the_kernel_may_write_a_jump(
    kernel: Program,
) -> None:
    def patched(size: int, reason: Reason) -> Program:
        return replace(kernel, patched_at_boot=np.array([[TEXT + 4, size, reason]], np.uint64))

    assert sites(patched(4, Reason.TRACER_CALL), "fbt::vm_fault:entry") == ["vm_fault+8"]
    assert deferred(patched(4, Reason.TRACER_CALL), "fbt::vm_fault:entry") == []
    for reason in DEFERRED[:3]:
        assert deferred(patched(4, reason), "fbt::vm_fault:entry") == ["vm_fault+4"]
    # Behind the room is only what cannot be probed, or may become so: the room is.
    unsure = np.array([[TEXT + 4, 4, Reason.TRACER_CALL], [TEXT + 8, 8, Reason.PATCHED_AT_BOOT]], np.uint64)
    assert deferred(replace(kernel, patched_at_boot=unsure), "fbt::vm_fault:entry") == ["vm_fault+4"]
    only = np.array([[TEXT + 4, 4, Reason.TRACER_CALL], [TEXT + 8, 8, Reason.REPLACEMENT]], np.uint64)
    assert deferred(replace(kernel, patched_at_boot=only), "fbt::vm_fault:entry") == ["vm_fault+4"]


def test_a_jump_to_the_part_that_was_split_off_is_the_last_act_of_a_function(tmp_path: Path) -> None:
    code = {"split": "je {split.cold}; jmp {split.part.0}", "split.part.0": "nop; ret", "split.cold": "jmp {split}"}
    kernel = program(tmp_path, small(functions=code))
    assert sites(kernel, "fbt::split:return") == ["split+2"]


def test_an_alternative_that_jumps_to_code_of_no_function_is_no_return(tmp_path: Path) -> None:
    """static_cpu_has() of Linux: until it is patched it tests out of line and comes back."""
    code = {"testing": "jmp {aside}; nop; ret", "aside": "jne {testing}; jmp {testing}"}
    kernel = program(tmp_path, small(functions=code))
    functions = kernel.functions
    assert functions.names[0] == "testing"
    known = Functions(functions.address[:1], functions.size[:1], functions.evidence[:1], functions.names[:1], {})
    alone = replace(kernel, functions=known)
    assert sites(alone, "fbt::testing:return") == ["testing+0", "testing+3"]
    patched = replace(alone, patched_at_boot=np.array([[TEXT, 2, Reason.PATCHED_AT_BOOT]], np.uint64))
    assert sites(patched, "fbt::testing:return") == ["testing+3"]


def test_entry_is_not_the_head_of_a_loop(tmp_path: Path) -> None:
    """Behind a landing pad there is nothing else; behind a tracer's room the room is."""
    code = {"looping": ".byte 0xf3, 0x0f, 0x1e, 0xfa; again: dec %ecx; jne again; ret"}
    kernel = program(tmp_path, small(functions=code))
    assert Reason.LOOP_HEAD.text in error_of(kernel, "fbt::looping:entry")
    assert sites(kernel, "kinst::looping:4") == ["looping+4"]
    code = {"looping": "nopl (%rax); again: dec %ecx; jne again; ret"}
    kernel = program(tmp_path, small(functions=code))
    roomy = replace(kernel, patched_at_boot=np.array([[TEXT, 3, Reason.TRACER_CALL]], np.uint64))
    assert deferred(roomy, "fbt::looping:entry") == ["looping+0"]


def test_what_the_kernel_writes_is_deferred_and_what_it_copies_is_refused(kernel: Program) -> None:
    ranges = [[TEXT + 4, 0, Reason.THUNK], [TEXT + 5, 4, Reason.STATIC_KEY], [TEXT + 6, 1, Reason.STATIC_CALL]]
    patched = replace(kernel, patched_at_boot=np.array([*ranges, [TEXT + 14, 2, Reason.TRACER_CALL]], np.uint64))
    assert deferred(patched, "kinst::vm_fault:") == ["vm_fault+5", "vm_fault+8", "vm_fault+14"]
    assert sites(patched, "kinst::vm_fault:") == [f"vm_fault+{offset}" for offset in (4, 5, 8, 10, 12, 13, 14)]
    assert deferred(patched, "fbt::vm_fault:return") == ["vm_fault+14"]
    name = kernel.functions.names[0]
    copied = replace(kernel, patched_at_boot=np.array([[TEXT + 5, 4, Reason.REPLACEMENT]], np.uint64))
    near = f"kinst::{name}:4 before and kinst::{name}:10 after it"
    assert error_of(copied, "kinst::vm_fault:5").endswith(f": {Reason.REPLACEMENT.text}; {near} can be probed")
    trap = replace(kernel, patched_at_boot=np.array([[TEXT, 16, Reason.BREAKPOINT]], np.uint64))
    assert error_of(trap, "kinst::vm_fault:8").endswith(f": {Reason.BREAKPOINT.text}")


def test_returns_are_rets_and_tail_calls_but_not_jumps_between_parts_of_one_function(kernel: Program) -> None:
    assert sites(kernel, "fbt::vm_fault:return") == ["vm_fault+13", "vm_fault+14"]
    # jmp *%rax and jne vm_fault are emulated: the runtime sees whether they leave. jmp helper.cold is helper itself.
    assert sites(kernel, "fbt::helper:return") == ["helper+2", "helper+4"]
    assert sites(kernel, "fbt::helper.cold:return") == ["helper.cold+1"]
    assert probes(kernel, "fbt::vm_fault:return") == ["vm_fault:return"]


def test_relocated_bytes_are_refused(kernel: Program) -> None:
    moved = replace(kernel, relocated=np.array([[TEXT + 11, 8]], np.uint64))
    assert probes(moved, "kinst::vm_fault:") == ["vm_fault:4", "vm_fault:5", "vm_fault:8"]
    assert "a relocation is applied to these bytes" in error_of(moved, "kinst::vm_fault:10")


def test_excluded_functions_are_refused_by_their_rule_unless_the_user_insists(kernel: Program) -> None:
    message = error_of(kernel, "fbt::dtrace_foo:entry")
    assert "dtrace_foo is excluded: dtrace_* runs in probe context" in message and "--include-excluded" in message
    assert probes(kernel, "fbt::dtrace_foo:entry", include_excluded=True) == ["dtrace_foo:entry"]
    assert resolved(kernel, "kinst:::").outcomes[0].refusals.counts()[Reason.EXCLUDED_FUNCTION] == 3


def test_without_dtrace_in_the_image_no_name_is_excluded(tmp_path: Path) -> None:
    plain = program(tmp_path)
    assert "dtrace_probe" not in plain.functions.names
    assert probes(plain, "kinst::dtrace_foo:") == ["dtrace_foo:0", "dtrace_foo:1"]


def test_an_address_stands_for_its_instruction(kernel: Program) -> None:
    assert probes(kernel, f"kinst::{TEXT + 10:#x}:") == [f"{kernel.functions.names[0]}:10"]
    assert probes(kernel, f"kinst::{TEXT + 4:#x}:4") == [f"{kernel.functions.names[0]}:8"]
    assert probes(kernel, f"fbt::{TEXT:#x}:entry") == [f"{kernel.functions.names[0]}:entry"]


def test_an_address_of_code_without_a_function_gets_one(kernel: Program) -> None:
    functions = kernel.functions
    row = functions.names.index("unnamed")
    kept = np.arange(len(functions)) != row
    names = tuple(name for name in functions.names if name != "unnamed")
    bare = replace(
        kernel, functions=Functions(functions.address[kept], functions.size[kept], functions.evidence[kept], names, {})
    )
    address = int(functions.address[row]) + 1
    assert bare.functions.row_at(address) is None
    assert probes(bare, f"kinst::{address:#x}:") == [f"sub_{address:x}:0"]
    assert probes(bare, f"kinst::{address:#x}:1", "kinst::spin:2") == ["spin:2", f"sub_{address:x}:1"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("kinst::vm_falt:", r"no function 'vm_falt' in small; the nearest are vm_fault"),
        ("kinst::zzz*:", r"no function 'zzz\*' in small"),
        (
            "kinst::vm_fault:6",
            r"offset 6 is inside the instruction at 5; instructions start at 0, 4, 5, 8, 10, 12, 13, 14",
        ),
        ("kinst::vm_fault:16", r"offset 16 is past the end: vm_fault is 16 bytes long"),
        ("kinst::vm_fault:0", r"vm_fault\+0 \(0xffffffff80100000\) is refused: a branch-target landing pad"),
        ("kinst::*:0x3f", r"none of \d+ functions has an instruction at offset 63"),
        ("fbt::start:entry", r"start\+0 .* no instruction at the function's entry can be probed \(a breakpoint of the"),
        (
            "fbt::vm_fault_quick:entry",
            r"no instruction at the function's entry can be probed \(opens an interrupt shadow",
        ),
        ("fbt::vm_fault_quick:", r"nothing left: 2 of 2 refused: .*; the first is vm_fault_quick\+0 \(0x[0-9a-f]+\)"),
        ("fbt::spin:return", r"spin has no return"),
        ("kinst:other:spin:0", r"no module 'other': this image is 'small'"),
        (f"kinst::{DATA + 8:#x}:", r"0xffffffff80200008 is not code: it is in \.data"),
        ("kinst::0x1234:", r"0x1234 is not code: no section holds it"),
        (f"kinst::{TEXT + 6:#x}:", r"offset 6 is inside the instruction at 5"),
        (f"fbt::{TEXT + 5:#x}:entry", r"no function starts at 0xffffffff80100005, which is \w+_fault\+0x5"),
        ("kinst::spin:entry", r"no debug information \(.debug_info\)"),
        ("fbt::spin:exit", r"the name of an fbt probe is entry or return, not 'exit'"),
        (
            "vm_fault",
            r"a probe in an image is .*, not 'vm_fault'; those of a function vm_fault are vm_fault:$",
        ),
        ("vm_fault:exit", r"the name of a probe in an image is entry, return or an offset, not 'exit'$"),
        ("fbt:vm_fault", r"not 'vm_fault'; fbt is a provider, the first of four fields: fbt::FUNCTION:NAME"),
        ("fbt:vm_fault:entry", r"no module 'fbt': this image is 'small'; fbt is a provider"),
        ("vm_*", r"matches no instruction: .*; those of the functions vm_\* are vm_\*:$"),
        ("sdt:::", r"provider 'sdt' has no probes in an image"),
    ],
)
def test_each_mistake_has_a_message_of_its_own(kernel: Program, spec: str, message: str) -> None:
    text = error_of(kernel, spec)
    assert text.startswith(f"{parse_probe_name(spec)}: ")
    pattern = message.replace("vm_fault is", "(vm|pmap)_fault is").replace(r"vm_fault\+0", r"(vm|pmap)_fault\+0")
    assert re.search(pattern, text), text


def test_a_long_function_lists_the_nearest_starts_only(tmp_path: Path) -> None:
    functions = {"long": "; ".join(["mov %rsp, %rbp"] * 20), "end": "ret"}
    long = program(tmp_path, small(functions=functions))
    assert error_of(long, "kinst::long:31").endswith(
        "offset 31 is inside the instruction at 30; the nearest start at 27, 30, 33, 36"
    )


def test_one_bad_name_does_not_hide_the_others(kernel: Program) -> None:
    outcomes = resolved(kernel, "kinst::spin:0", "kinst::nope:", "fbt::spin:entry").outcomes
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
