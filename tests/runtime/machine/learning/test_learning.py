"""--learn: a guest with the loops of drivers goes on; what it was told is in a board file that lets it run at once."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from random import Random
from subprocess import CompletedProcess, run
from typing import Any, Final

import pytest

from tests.commands.in_process import kinst_run
from tests.samples.machines import missing

SOURCE: Final = Path(__file__).with_name("loops.c")
SAYS: Final = (
    *("locked", "idle", "state", "both", "identity", "counter", "handshake", "reset", "done", "steady"),
    *("no data", "empty", "end"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A machine: its compiler, RAM, UART, and how many ticks of its counter are a hundredth of a second."""

    compiler: str
    options: tuple[str, ...]
    ram: int
    uart: int
    kind: str
    ticks: int


TARGETS: Final = {
    "arm64": Target("aarch64-linux-gnu-gcc", (), 0x4000_0000, 0x900_0000, "pl011", 625_000),
    "riscv64": Target("riscv64-linux-gnu-gcc", ("-mcmodel=medany",), 0x8000_0000, 0x1000_0000, "ns16550", 100_000),
}


def built(name: str, folder: Path, *defined: str) -> Path:
    """The guest."""
    target = TARGETS[name]
    if why := missing(target.compiler):
        pytest.skip(why)
    image = folder / "loops.elf"
    command = [target.compiler, "-O2", "-ffreestanding", "-fno-pic", "-no-pie", "-nostdlib", "-static"]
    command += [
        *target.options,
        "-Wl,--build-id=none",
        f"-Wl,-Ttext={target.ram + 0x1_0000:#x}",
        "-Wl,-z,max-page-size=4096",
    ]
    command += [f"-DUART={target.uart:#x}UL", f"-DTICKS={target.ticks}ULL", *defined, str(SOURCE), "-o", str(image)]
    run(command, check=True)
    return image


def board(name: str, folder: Path, more: str = "") -> Path:
    target, file = TARGETS[name], folder / "board.toml"
    file.write_text(f"""\
cpu = "{name}"
[memory.ram]
address = {target.ram:#x}
size = "16m"
[devices.console]
kind = "{target.kind}"
address = {target.uart:#x}
[registers]
unnamed = "last"
[registers.device]
address = 0x2000_0000
{more}
""")
    return file


def traced(image: Path, *words: object) -> CompletedProcess[str]:
    return kinst_run(*words, "--clock", "icount", "--timeout", "20s", "--until", "^end", image)


@dataclass(frozen=True, slots=True)
class Learned:
    """A run that has learned: the guest, its folder, and what was printed."""

    image: Path
    folder: Path
    result: CompletedProcess[str]

    @property
    def file(self) -> Path:
        return self.folder / "learned.toml"


@pytest.fixture(scope="module", params=TARGETS)
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    folder = tmp_path_factory.mktemp(request.param)
    image = built(request.param, folder)
    result = traced(image, "--board", board(request.param, folder), "--learn", folder / "learned.toml")
    return Learned(image, folder, result)


def test_a_guest_goes_on(learned: Learned) -> None:
    said = learned.result.stderr
    assert learned.result.stdout.splitlines() == list(SAYS), said
    assert "not learned" not in said
    assert said.count("kinst-run: learned: ") == 12
    text = learned.file.read_text()
    rules: dict[str, Any] = tomllib.loads(text)["registers"]["device"]
    assert {key: value["reads"] for key, value in rules.items()} == {
        "R0": {"rule": "last", "set": 1 << 31},
        "R4": {"rule": "last", "clear": 1},
        "R8": {"rule": "last", "set": 0x50},
        "RC": {"rule": "last", "set": 0x101},
        "R10": {"rule": "last", "set": 0x5AFE_1234},
        "R14": {"rule": "count", "value": 0, "step": 0x100},
        "R18": {"rule": "last", "toggle": 4},
        "R1C": {"rule": "last", "clear": 0x80},
        "R20": {"rule": "last", "set": 0x100},
        "R24": {"rule": "last", "set": 2},
        "R2C": {"rule": "last", "clear": 0x15},
    }
    assert "# by loops`locked+" in text
    assert ": 0x100 set leaves its loop; others lead to an error" in text
    assert "(also: one of 0x1e set)" in text


def test_it_runs_at_once_with_what_was_learned(learned: Learned) -> None:
    """And to learn where nothing is left to learn changes nothing, to the instruction."""
    before = learned.file.read_bytes()
    words = ("-q", "--board", learned.file, "-n", 'END { printf("%d", timestamp); }')
    plain, learning = traced(learned.image, *words), traced(learned.image, *words, "--learn", learned.file)
    assert plain.stdout.startswith(learned.result.stdout)
    assert (learning.stdout, learning.stderr) == (plain.stdout, "")
    assert learned.file.read_bytes() == before


def test_the_same_command_goes_on_with_what_the_user_has_edited(tmp_path: Path) -> None:
    image, learned, file = built("riscv64", tmp_path), tmp_path / "learned.toml", board("riscv64", tmp_path)
    learned.write_text(
        'extends = "board.toml"\n[registers.device]\n# mine\nIDLE = { offset = 4, reads = 0x40 }  # not busy\n'
        "[registers.device.R0]\noffset = 0\n# by somebody: once\nreads = 1\n"
    )
    assert traced(image, "--board", file, "--learn", learned).stdout.splitlines() == list(SAYS)
    text = learned.read_text()
    assert "# mine\nIDLE = { offset = 4, reads = 0x40 }  # not busy\n" in text
    assert "somebody" not in text
    assert tomllib.loads(text)["registers"]["device"]["R0"]["reads"] == 0x8000_0001
    refused = traced(image, "--board", "virt-riscv64", "--learn", learned)
    assert (
        refused.stderr == f"kinst-run: --learn {learned}: extends board.toml, and not virt-riscv64: name another file\n"
    )


@pytest.mark.parametrize("seed", range(6))
def test_what_is_learned_is_what_the_comparison_asks_for(seed: int, tmp_path: Path) -> None:
    """Masks and values are drawn; who knows them says whether a rule is right."""
    random = Random(seed)
    mask = random.choice((random.getrandbits(32), 0xFF << random.randrange(25), 1 << random.randrange(32), 0xFFFF_FFFF))
    value, written = random.getrandbits(32) & mask, random.getrandbits(32)
    defined = (f"-DMASK={mask:#x}u", f"-DVALUE={value:#x}u", f"-DWRITTEN={written:#x}u")
    image, learned = built("riscv64", tmp_path, *defined), tmp_path / "learned.toml"
    result = traced(image, "--board", board("riscv64", tmp_path), "--learn", learned)
    assert result.stdout == "end\n", f"{mask:#x} {value:#x} {written:#x}\n{result.stderr}"
    if written & mask == value:
        assert not learned.exists()
        return
    rule = tomllib.loads(learned.read_text())["registers"]["device"]["R0"]["reads"]
    read = written & ~rule.get("clear", 0) | rule.get("set", 0)
    assert (rule["rule"], read & mask) == ("last", value)


def test_a_board_without_registers_is_refused(tmp_path: Path) -> None:
    image = built("riscv64", tmp_path)
    result = kinst_run("--learn", tmp_path / "learned.toml", image)
    assert result.returncode != 0
    assert 'has no [registers]: write unnamed = "last" there' in result.stderr
    assert not (tmp_path / "learned.toml").exists()
