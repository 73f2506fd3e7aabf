"""Patches of a program -> what the commands show of them, as values and as text."""

from collections.abc import Iterator, Sequence
from typing import Any

from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.patching.placing import place_name
from kinst.rewriter.program import Program
from kinst.rewriter.shell.wording import counted
from kinst.targets.manifest.packed import Manifest
from kinst.targets.patch import Patch


def patches_text(manifest: Manifest) -> str:
    """``2 patches, 14 bytes``."""
    size = sum(len(patch.code) for patch in manifest.patches)
    return f"{counted(len(manifest.patches), 'patch')}, {counted(size, 'byte')}"


def patch_values(program: Program, patches: Sequence[Patch]) -> Iterator[dict[str, Any]]:
    """Each patch for `json.dumps`: where it is, and its instructions before and after."""
    facts = program.image.facts
    for patch in patches:
        before, after = (
            "; ".join(line.text for line in disassemble(facts, code, patch.address))
            for code in (patch.original, patch.code)
        )
        yield {
            "address": patch.address,
            "site": place_name(program, patch.address),
            "before": patch.original.hex(" "),
            "instructions": before,
            "after": patch.code.hex(" "),
            "patched": after,
            "text": patch.text,
        }


def patch_line(value: dict[str, Any]) -> str:
    """One of them as a line."""
    return (
        f"{value['address']:#x} {value['site']}: {value['before']} {value['instructions']} -> "
        f"{value['after']} {value['patched']}"
    )
