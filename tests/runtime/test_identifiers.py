"""An identifier names one probe, in every command and whatever else there is."""

from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.naming.resolve import numbering_of, resolve
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.rewriting import Source, open_source
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.probe import parse_probe_name
from tests.commands.in_process import command, kinst_run
from tests.gated import long_after_first
from tests.images import at_hand, real_image
from tests.rewriter.programs import program

ROOT = Path(__file__).parent.parent.parent
SAMPLES = [ROOT / "samples" / f"kernel-{machine}.elf" for machine in ("amd64", "arm64", "riscv64")]
EVERYTHING = ("kinst:::", "fbt:::", "sdt:::")


def listed(stdout: str) -> dict[int, str]:
    """The rows of a table by identifier."""
    rows = [line.split() for line in stdout.splitlines()[1:]]
    found = {int(row[0]): ":".join(row[1:5]) for row in rows}
    assert len(found) == len(rows), "an identifier stands twice"
    return found


@pytest.mark.parametrize("image", long_after_first(SAMPLES), ids=lambda path: path.stem)
def test_all_commands_number_alike(image: Path, tmp_path: Path) -> None:
    everything = listed(command("list_probes", image, *EVERYTHING).stdout)
    assert min(everything) >= FIRST_PROBE_ID and len(everything) > 3000
    command("rewrite", image, "-p", "fbt::kmalloc:", "-p", "kinst::vfs_read:", "-o", tmp_path / "p.elf")
    lists = [
        command("list_probes", image).stdout,
        command("list_probes", tmp_path / "p.elf").stdout,
        command("list_probes", tmp_path / "p.elf", "fbt::k*:", "sdt:::").stdout,
        kinst_run("-l", image, "-n", "kinst::kmalloc:, fbt::kmalloc:entry").stdout,
        kinst_run("-l", tmp_path / "p.elf", "-n", "kinst::kmalloc:, fbt::vfs_*:").stdout,
    ]
    for text in lists:
        own = {number: name for number, name in listed(text).items() if number >= FIRST_PROBE_ID}
        assert own and own.items() <= everything.items()


def test_an_identifier_enables_its_probe_and_the_output_shows_it(tmp_path: Path) -> None:
    image = SAMPLES[0]
    command("rewrite", image, "-p", "fbt::vfs_*:", "-o", tmp_path / "p.elf")
    for text in ("fbt::kmalloc:entry", "kinst::kmalloc:11", "callout_execute:::callout_start"):
        ((identifier, name),) = listed(command("list_probes", image, text).stdout).items()
        for path in (image, tmp_path / "p.elf"):
            program = "fbt::vfs_read:entry {} tick-1s {} END { exit(0) }"
            run = kinst_run(
                path, "-n", program, "-i", str(identifier), "--console", tmp_path / "console", "--clock", "icount"
            )
            fired = {tuple(line.split()[1:3]) for line in run.stdout.splitlines()[1:] if line}
            function, last = name.split(":")[2:]
            assert (str(identifier), f"{function}:{last}") in fired, run.stderr
            assert [one for one in fired if "kmalloc" in one[1] or "callout" in one[1]] == [
                (str(identifier), f"{function}:{last}")
            ]


def test_an_identifier_that_is_none_or_anothers_next_time_is_an_error() -> None:
    unknown = kinst_run("-e", SAMPLES[0], "-i", "99999999")
    assert unknown.returncode == 1 and "Unknown probe identifier" in unknown.stderr
    made = kinst_run("-e", "-n", "tick-7s", "-i", "17")
    assert made.returncode == 1
    assert "profile:::tick-7s is created on demand, and its identifier may be another probe's" in made.stderr
    assert listed(kinst_run("-l", "-n", "tick-7s").stdout) == {17: "profile:tick-7s"}
    assert kinst_run("-e", "-n", "tick-7s", "-i", "16").returncode == 0
    never = listed(command("list_probes", SAMPLES[0], "fbt::kmain:entry").stdout)
    refused = kinst_run("-e", SAMPLES[0], "-i", str(min(never) + 1))
    assert "Unknown probe identifier: kmain has no return" in refused.stderr


def test_code_without_a_name_is_numbered_by_its_address(tmp_path: Path) -> None:
    kernel = program(tmp_path)
    numbers = numbering_of(kernel)
    both: dict[int, str] = {}
    for texts in (("kinst:::", "fbt:::"), ("fbt:::entry",), ("kinst::start:",), ("kinst:::0",)):
        manifest, _ = manifest_of(resolve(kernel, [parse_probe_name(text) for text in texts]))
        for row, identifier in enumerate(manifest.identifiers.tolist()):
            assert both.setdefault(identifier, manifest.probe_name(row)) == manifest.probe_name(row)
            assert identifier < numbers.end


@pytest.mark.parametrize("name", long_after_first(["opensbi-1.6", "linux-amd64"]))
def test_every_identifier_of_a_real_image_leads_back_to_its_probe(name: str) -> None:
    if not at_hand(name):
        pytest.skip("it is not in the cache")
    opened = open_source(Source(real_image(name)))
    numbers = numbering_of(opened.program)
    spec = "fbt:::" if name == "linux-amd64" else "kinst:::"
    manifest, _ = manifest_of(resolve(opened.program, [parse_probe_name(spec)]))
    identifiers = manifest.identifiers
    assert len(np.unique(identifiers)) == len(identifiers)
    for row in np.linspace(0, len(identifiers) - 1, 20).astype(int).tolist():
        meant = numbers.name(int(identifiers[row]))
        assert meant is not None and meant.address is not None
        function = manifest.functions[int(manifest.probes["function"][row])]
        assert meant.address == int(function["address"]) + (
            int(manifest.probes["offset"][row]) if spec != "fbt:::" else 0
        )
        assert spec != "fbt:::" or meant.name == manifest.probe_fields(row)[3]
