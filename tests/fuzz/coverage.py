"""Files of coverage that lie: one that was right with bytes or values changed, read by kinst-diff in all its ways."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hypothesis import strategies as st

from kinst.rewriter.cli import diff
from kinst.runtime.cli import run as kinst_run
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.caches import VALUES, Change, changed
from tests.fuzz.kind import Finding, Kind, command

_SAMPLE: Final = Path(__file__).parent.parent.parent / "samples" / "kernel-arm64.elf"
_ENDINGS: Final = (".json", ".drcov", ".info")


@cache
def _file() -> bytes:
    """What a call of the sample kernel writes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.json"
        command(kinst_run, _SAMPLE, "-q", "--coverage", path, "--call", 'hash_bytes(1, "fuzzed", 6)')
        return path.read_bytes()


def _read(drawn: tuple[Damage | list[Change], str], folder: Path) -> None:
    how, ending = drawn
    good, bad, output = folder / "good.json", folder / "bad.json", folder / f"output{ending}"
    good.write_bytes(_file())
    if isinstance(how, Damage):
        bad.write_bytes(how.of(_file(), [range(len(_file()))]))
    else:
        content = json.loads(_file())
        for path, what in how:
            content = changed(content, path, what)
        bad.write_text(json.dumps(content))
    for words in ((bad, good), (good, bad, "--format", "json"), (bad, bad, "-o", folder / "picture.svg")):
        command(diff, "--runs", *words)
    for words in ((bad, good), (bad, bad)):
        done = command(diff, "--sum", *words, "-o", output)
        if ending == ".json" and done.exit_code == 0 and command(diff, "--runs", output, good).exit_code == 2:
            raise Finding("what was written cannot be read")


_CHANGES: Final = st.lists(st.tuples(st.lists(st.integers(0, 60), max_size=8).map(tuple), VALUES), max_size=3)
COVERAGE: Final = Kind(
    "coverage", st.tuples(st.one_of(damages(1), _CHANGES), st.sampled_from(_ENDINGS)), _read, seconds=60
)
