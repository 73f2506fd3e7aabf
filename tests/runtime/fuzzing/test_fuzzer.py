"""A fuzzer finds what is planted, does the same each time, and says what it has found."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.api import open_image
from kinst.runtime.coverage.json_format import read_coverage
from kinst.runtime.fuzzing.cli import fuzz
from kinst.runtime.fuzzing.dictionary import words_of
from kinst.runtime.fuzzing.inputs import read_inputs
from kinst.runtime.fuzzing.mutating import Mutator
from tests.commands.in_process import kinst_run
from tests.targets.debuginfo.compiled import compiled

SOURCE = Path(__file__).with_name("parsers.c")
BASES = {"amd64": 0x20_0000, "arm64": 0x4020_0000, "riscv64": 0x8000_0000}
MODELS = {"amd64": (), "arm64": (), "riscv64": ("-mcmodel=medany",)}
SAMPLES = Path(__file__).parents[3] / "samples"
# What each parser takes as it is: a user has such an input.
VALID = {
    "parse_records($data, $size)": b"KR\1\2ab",
    "parse_command($text)": b"set 1",
    "parse_header($data, $size)": b"\xfe\xed\xc0\xde\0\0\0\x18\0\0\0\4\0\0\0\x10table...",
}
HANGS = "find_end($data, $size)"
each_machine = pytest.mark.parametrize("arch", BASES)


def built(arch: str, folder: Path) -> Path:
    options = ("-fno-stack-protector", *MODELS[arch], f"-Wl,-Ttext-segment={BASES[arch]:#x}")
    return compiled(folder, arch, {"parsers.c": SOURCE.read_text()}, *options).path


def fuzzed(image: Path, call: str, *words: object) -> Result:
    result = CliRunner().invoke(fuzz, [str(one) for one in (image, "--call", call, *words)], prog_name="kinst-fuzz")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.turns
@each_machine
def test_planted_bugs_are_found_from_valid_inputs(arch: str, tmp_path: Path) -> None:
    image = built(arch, tmp_path)
    for number, (call, content) in enumerate(VALID.items()):
        corpus, crashes = tmp_path / f"corpus{number}", tmp_path / f"crashes{number}"
        corpus.mkdir()
        (corpus / "valid").write_bytes(content)
        words = ("--corpus", corpus, "--crashes", crashes, "--runs", 900, "--max-size", 64, "-q")
        result = fuzzed(image, call, *words)
        assert result.exit_code == 3, result.output
        function = call.partition("(")[0]
        assert "crash: read of 0x" in result.output
        assert f", where nothing is, at image`{function}" in result.output
        (kept, *_) = read_inputs(crashes, 64)
        assert len(kept) <= max(len(content), 16)
        again = fuzzed(image, call, "--corpus", crashes, "--runs", 1, "-q")
        assert again.exit_code == 3  # the input that was kept does it by itself


@pytest.mark.long
@each_machine
def test_planted_bugs_are_found_from_nothing(arch: str, tmp_path: Path) -> None:
    image = built(arch, tmp_path)
    for call in (*VALID, HANGS):
        result = fuzzed(image, call, "--runs", 60_000 if call != HANGS else 300, "--max-size", 64, "-q")
        assert result.exit_code == 3, (call, result.output)


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    image, call = SAMPLES / "kernel-arm64.elf", "hash_bytes($size, $data, 20)"
    found = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / f"{number}"
        result = fuzzed(image, call, "--seed", seed, "--runs", 150, "--corpus", folder, "-q")
        found.append((result.output, sorted(one.name for one in folder.iterdir())))
    assert found[0] == found[1] != found[2]


def test_what_kept_inputs_run_is_written(tmp_path: Path) -> None:
    """As often as calls of the same inputs do."""
    corpus, file, rows = tmp_path / "corpus", tmp_path / "a.json", tmp_path / "rows"
    fuzzed(
        SAMPLES / "kernel-arm64.elf",
        "hash_bytes(1, $data, $size)",
        "--runs",
        40,
        "--corpus",
        corpus,
        "--coverage",
        file,
    )
    inputs = [path.read_bytes() for path in corpus.iterdir()]
    rows.write_text("".join(f'hex"{data.hex()}", {len(data)}\n' for data in inputs))
    again = tmp_path / "b.json"
    words = ("--call", "hash_bytes(1, $1, $2)", "--call-each", rows, "--coverage", again, "-q")
    assert kinst_run(SAMPLES / "kernel-arm64.elf", *words).returncode == 0
    one, other = (read_coverage(path).images for path in (file, again))
    assert one == other
    assert [function.runs for function in one[0].ran] == [len(inputs)]


def test_what_hangs_is_told(tmp_path: Path) -> None:
    result = fuzzed(SAMPLES / "kernel-riscv64.elf", "fibonacci($size, $data)", "--timeout", "30us", "--runs", 60, "-q")
    assert (result.exit_code, result.output.splitlines()[0]) == (3, "hang: did not return in time")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--call", "memcpy(1, 2)"), "say where the input goes"),
        (("--call", "memcpy($datum)"), "$datum: is one of $data, $text and $size"),
        (("--call", "nosuch($data)"), "no such function"),
        (("--call", "memcpy($data)", "--align", "3"), "is no power of two"),
        (("--call", "memcpy($data)", "--corpus", "/dev/null"), "/dev/null: "),
        (("--call", "memcpy($data)", "--from", "/dev/null"), "/dev/null: "),
    ],
)
def test_one_line_says_what_is_wrong(words: tuple[str, ...], why: str) -> None:
    result = CliRunner().invoke(fuzz, [str(SAMPLES / "kernel-arm64.elf"), *words], prog_name="kinst-fuzz")
    assert result.exit_code in (1, 2)
    assert why in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_ctrl_c_ends_it_with_what_was_found(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from kinst.rewriter.commandline.entry import kinst_fuzz; kinst_fuzz()"]
    words = ["hash_bytes(1, $data, $size)", "--corpus", str(tmp_path / "in"), "-q"]
    image = str(SAMPLES / "kernel-amd64.elf")
    with subprocess.Popen([*command, image, "--call", *words], stdout=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "in").exists() or not any((tmp_path / "in").iterdir()):
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        output = process.communicate()[0]
    assert process.returncode == 0
    assert " calls: " in output


@each_machine
def test_the_dictionary_has_what_the_code_compares_with(arch: str, tmp_path: Path) -> None:
    with open_image(built(arch, tmp_path)) as image:
        address = image.opened.image.symbols.address_of("parse_header")
        assert address is not None
        constants, texts = words_of(image.opened, address)
    assert bytes.fromhex("feedc0de") in constants
    assert b"set " in texts


def test_inputs_keep_to_their_size() -> None:
    from random import Random

    mutator, data = Mutator(Random(1), [[b"word"], []], 20), b""
    sizes = set()
    for _ in range(500):
        data = mutator.mutated(data, [b"", b"other", data])
        sizes.add(len(data))
    assert max(sizes) == 20
    assert min(sizes) < 3
