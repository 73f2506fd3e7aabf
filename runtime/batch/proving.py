"""An image and probes -> a patched image, and proof that it is right: every difference is explained, the original can
be restored, and binutils accept it."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kinst.rewriter.diffing.diff import compare
from kinst.rewriter.naming.probe_choice import probe_names
from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.outcome_report import summary_lines
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.restore import restore
from kinst.rewriter.writing.write import write_image
from kinst.runtime.batch.rows import Answer, Outcome, Row
from kinst.runtime.batch.tasks import InputFile, Places, Rewrite
from kinst.targets.errors import KinstError, ProbeError
from kinst.targets.image import module_name, open_image
from kinst.targets.method import Method

_READELF: Final = ("readelf", "--wide", "--file-header", "--segments", "--sections", "--symbols", "--notes")


def rewrite_and_prove(image: InputFile, work: Rewrite, places: Places) -> Answer:
    """Patch the image into a temporary file, and check that file.

    Raises:
        KinstError: the image cannot be patched this way.
    """
    opened = open_source(Source(places[image.sha256], module_name(Path(image.name))))
    if opened.manifest is not None:
        raise ProbeError("is a patched image already: give the original")
    names = probe_names((work.probes,), opened.image)
    method = None if work.method is None else Method(work.method)
    resolution, plan = plan_probes(opened, names, method=method)
    with tempfile.TemporaryDirectory() as folder:
        patched, back = Path(folder, "patched.elf"), Path(folder, "original.elf")
        proofs = dict(_proofs(plan, patched, back))
        row = _facts(resolution, plan, patched)
    wrong = [f"{what}: {why}" for what, why in proofs.items() if why]
    row |= {
        "outcome": (Outcome.FAILED if wrong else Outcome.DONE).value,
        "reason": "; ".join(wrong) or None,
        "proved": None if wrong else ", ".join(proofs),
    }
    return Answer((row,))


def _proofs(plan: Plan, patched: Path, back: Path) -> Iterator[tuple[str, str]]:
    """The checks, each with what is wrong, or an empty text."""
    try:
        manifest = write_image(plan, patched)
        found = compare(open_image(plan.image.path), open_image(patched))
        yield "explained", "" if found.is_explained else f"{found.unexplained_count:,} differences are not"
        restore(open_image(patched), manifest, back)
    except KinstError as error:  # what was planned must hold: it is no refusal
        yield "written and read again", str(error)
        return
    same = back.read_bytes() == plan.original.data.tobytes()
    yield "restored", "" if same else "not to the original"
    if shutil.which(_READELF[0]):
        # What readelf also says of the original is not our doing.
        yield "readelf", "; ".join(sorted(_complaints(patched) - _complaints(back))[:3])


def _facts(resolution: Resolution, plan: Plan, patched: Path) -> Row:
    manifest = plan.manifest
    refused = sum(len(outcome.refusals) for outcome in resolution.outcomes) + len(plan.lost)
    return {
        "machine": plan.image.facts.name,
        "sites": len(manifest.sites),
        "probes": len(manifest.probes),
        "refused_sites": refused,
        "added": patched.stat().st_size - len(plan.original.data) if patched.exists() else None,
        "remarks": "\n".join(summary_lines(resolution, plan.lost, len(manifest.sites))) or None,
    }


def _complaints(path: Path) -> set[str]:
    """The warnings of readelf about a file, without the file's name."""
    words = [*_READELF, str(path)]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    return {line.replace(str(path), "").strip() for line in done.stderr.splitlines()}
