"""Files of --call-each and calls that say nothing sensible, and folders of inputs for kinst-fuzz."""

from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.runtime.cli import run as kinst_run
from kinst.runtime.fuzzing.cli import fuzz as kinst_fuzz
from kinst.runtime.machine.calling.arguments import parse_arguments, shown
from kinst.runtime.machine.calling.call_rows import calls_of
from kinst.runtime.machine.calling.template import parse_call, parse_template
from kinst.targets.errors import KinstError
from tests.fuzz.kind import Finding, Kind, command

_IMAGE: Final = Path(__file__).parents[2] / "samples" / "kernel-arm64.elf"
_PIECES: Final = st.sampled_from(
    (
        *('"a"', '"', "'", "hex", 'hex"', 'hex"00ff"', 'hex"0"', 'hex"zz"', "{", "}", "{}", "{{{{", ",", "u8", "u32 7"),
        *("1", "-1", "0x", "0x10", "1e9", "9" * 40, "$1", "$2", "$0", "$name", "$", "name", "#", "\\", '"\\x"', "\0"),
        *(" ", "(", ")", "é", "u64 {1}", "{u8 1, 2}", '{"a", hex""}', "'\\n'", '"\\N{x}"', "00", "_1", "1_000"),
    )
)
_LINE: Final = st.lists(_PIECES | st.text(max_size=4), max_size=12).map("".join)
_FOUND: Final = 3  # kinst-fuzz's exit status if something crashes
_FUNCTIONS: Final = st.sampled_from(("memcpy", "fibonacci", "nosuch", "0x0", "0x40080000", "0x" + "f" * 17, "$1", ""))


def _call(drawn: tuple[str, str, list[str]], folder: Path) -> None:
    """What is read of a call is what is written of it, and nothing else is an error than what an error says."""
    function, inside, lines = drawn
    text = f"{function}({inside})"
    try:
        call = parse_call(text)
        if parse_arguments(", ".join(map(shown, call.arguments)), "") != call.arguments:
            raise Finding(f"{call.arguments} is written as {call.text}")
    except KinstError:
        pass
    rows = folder / "rows"
    rows.write_text("\n".join(lines), errors="surrogateescape")
    try:
        with rows.open("rb") as file:
            list(calls_of(parse_template(text), file, "rows"))
    except KinstError as error:
        if "\n" in str(error).strip():
            raise Finding(f"an error of several lines: {error}") from None


def _made(drawn: tuple[str, str, list[str], bytes], folder: Path) -> None:
    """The same by the commands, which make the calls."""
    function, inside, lines, content = drawn
    rows, corpus = folder / "rows", folder / "corpus"
    rows.write_text("\n".join(lines), errors="surrogateescape")
    corpus.mkdir(exist_ok=True)
    (corpus / "folder").mkdir(exist_ok=True)
    (corpus / "input").write_bytes(content)
    call = ("--call", f"{function}({inside})".replace("\0", ""), "--timeout", "20us")
    command(kinst_run, _IMAGE, *call, "--call-each", rows, "-q")
    words = ("--call", f"{function}($data, {inside})".replace("\0", ""), "--timeout", "20us")
    command(kinst_fuzz, _IMAGE, *words, "--corpus", corpus, "--runs", "4", "-q", "--max-size", "9", also=_FOUND)


_LINES: Final = st.lists(_LINE, max_size=5)
CALLS: Final = Kind("calls", st.tuples(_FUNCTIONS, _LINE, _LINES), _call)
CALLS_MADE: Final = Kind("calls-made", st.tuples(_FUNCTIONS, _LINE, _LINES, st.binary(max_size=20)), _made, 60)
