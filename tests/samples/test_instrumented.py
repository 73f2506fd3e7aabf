"""fbt's entries and returns in the sample kernel, function by function, beside a build of it that calls a function at
each entry and exit (-finstrument-functions): it has no tail calls."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.hits import Hit
from tests.samples.machines import MACHINES, SAMPLES
from tests.system.activations import with_refused_returns

HOOKS = """
#define HOOK __attribute__((noinline, no_instrument_function))
HOOK void __cyg_profile_func_enter(void *function, void *caller) { asm volatile("" ::"r"(function), "r"(caller)); }
HOOK void __cyg_profile_func_exit(void *function, void *caller) { asm volatile("" ::"r"(function), "r"(caller)); }
"""
# The compiler makes no function of several or of parts of one, so that both builds have the same.
ALIKE = "-fno-inline -fno-ipa-sra -fno-ipa-cp -fno-ipa-icf -fno-partial-inlining -fno-reorder-blocks-and-partition"


def built(folder: Path, machine: str, options: str) -> Path:
    """The sample with more options."""
    compiler = MACHINES[machine].compiler
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    source = folder / "samples" / "kernel"
    shutil.copytree(SAMPLES / "kernel", source)
    (source / "hooks.c").write_text(HOOKS)
    wrapper = folder / "with-gcc"
    wrapper.write_text(f'#!/bin/sh\nexec {compiler} {ALIKE} {options} "$@"\n')
    wrapper.chmod(0o755)
    environment = {**os.environ, f"CROSS_{machine.upper()}": str(folder / "with-")}
    subprocess.run([source / "build", machine], env=environment, check=True)
    return folder / "samples" / f"kernel-{machine}.elf"


def counted(image: Path, description: str, name: Callable[[Trace, Hit], str]) -> Counter[str]:
    """How often probes fire, by what `name` says."""
    found: Counter[str] = Counter()

    def fired(hit: Hit) -> None:
        found[name(trace, hit)] += 1

    with open_image(image) as file:
        trace = file.trace(actions={description: fired}, machine=Machine(clock="icount"))
    assert trace.run(seconds=60) is End.POWER_OFF
    return found


def of_probe(_trace: Trace, hit: Hit) -> str:
    return hit.probe.function


def of_argument(trace: Trace, hit: Hit) -> str:
    table = trace.guest.loaded.image.symbols
    return table.names(np.flatnonzero(table.address == np.uint64(hit.argument(0))))[-1]


@pytest.mark.parametrize("machine", MACHINES)
def test_entries_and_returns_are_those_of_an_instrumented_build(machine: str, tmp_path: Path) -> None:
    """Of functions that are called as often in both: some wait for the clock."""
    plain = built(tmp_path / "plain", machine, "")
    instrumented = built(tmp_path / "instrumented", machine, "-finstrument-functions")
    entries, returns = (counted(plain, f"fbt:::{name}", of_probe) for name in ("entry", "return"))
    hooks = ("enter", "exit")
    enters, exits = (counted(instrumented, f"fbt::__cyg_profile_func_{name}:entry", of_argument) for name in hooks)
    refused = with_refused_returns(open_source(Source(plain)))
    alike = [name for name in enters if entries[name] == enters[name] and name not in refused]
    assert {name: returns[name] for name in alike} == {name: exits[name] for name in alike}
    assert len(alike) > 80  # others are inlined by force, or wait for the clock
