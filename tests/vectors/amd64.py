"""The table `amd64.txt` as values."""

from dataclasses import dataclass
from pathlib import Path

from kinst.targets.arch.amd64 import Kind
from kinst.targets.instruction import Flow, Reason, Verdict

ADDRESS = 0x401000


@dataclass(frozen=True, slots=True)
class Vector:
    """One instruction at `ADDRESS` and what must be said of it."""

    code: bytes
    text: str  # as capstone prints it; ? where capstone 5 has no such instruction, or another size for it
    kind: Kind
    verdict: Verdict
    reason: Reason
    flow: Flow
    target: int
    effect: str

    def __str__(self) -> str:
        return f"{self.code.hex()} {self.text}"


def _vector(line: str) -> Vector:
    """Columns at the end may be missing."""
    columns = [column.strip() for column in line.split("|")]
    code, text, kind, verdict, flow, target, effect = columns + [""] * (7 - len(columns))
    refused = verdict not in Verdict.__members__
    return Vector(
        code=bytes.fromhex(code),
        text=text,
        kind=Kind[kind],
        verdict=Verdict.REFUSE if refused else Verdict[verdict],
        reason=Reason[verdict] if refused else Reason.NONE,
        flow=Flow[flow],
        target=(ADDRESS + int(target, 16)) % (1 << 64) if target else 0,
        effect=effect,
    )


_LINES = (Path(__file__).parent / "amd64.txt").read_text().splitlines()
VECTORS = [_vector(line) for line in _LINES if line and not line.startswith("#")]
