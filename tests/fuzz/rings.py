"""Memory of a standalone image that something else has stored to, look by look: whatever is found is bounded by the
size of the ring, and is of sites that there are; or it is refused."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from kinst.runtime.tracing.standalone.findings import Findings
from kinst.targets.errors import MachineError
from kinst.targets.standalone import WORD, Action, Standalone
from tests.fuzz.kind import Finding, Kind

_ADDRESS: Final = 0x8010_0000
_SITES: Final = 3
_FIELDS: Final = ("arg0", "time")
_FORMS: Final = {
    Action.COUNT: np.full(_SITES, -1),
    Action.RECORD: np.zeros(_SITES, np.intp),
    Action.MIX: np.array([-1, 0, 1]),
}
_WORDS: Final = st.one_of(st.integers(0, 9), st.integers(0, (1 << 64) - 1), st.sampled_from(((1 << 64) - 1, 1 << 63)))
Look = tuple[list[tuple[int, int]], bool]  # words that are stored before it, by place; whether it is the last


def _run(given: tuple[Action, int, list[Look]], _folder: Path) -> None:
    action, power, looks = given
    kept, forms = _kept(action, 1 << power), _FORMS[action]
    size = WORD * _SITES if action is Action.COUNT else kept.kept_size
    memory, findings = np.zeros(size // WORD, "<u8"), Findings(kept, forms)

    def read(address: int, count: int) -> bytes:
        start = address - _ADDRESS
        if not 0 <= start <= start + count <= size:
            raise Finding(f"{address:#x}, {count} bytes: are read outside of it")
        return memory.tobytes()[start : start + count]

    for stores, is_last in looks:
        for place, word in stores:
            memory[place % len(memory)] = word
        try:
            found = findings.take(read, is_last=is_last)
        except MachineError:
            continue
        if len(found.records) > kept.capacity or (len(found.records) and found.records[:, 0].max() >= _SITES):
            raise Finding(f"{len(found.records)} records of {kept.capacity}")
        if found.lost < 0 or (forms[found.records[:, 0].astype(np.intp)] < 0).any():
            raise Finding(f"{found.lost} are lost, or one is of a site that counts")


def _kept(action: Action, capacity: int) -> Standalone:
    if action is Action.MIX:
        return Standalone(action, _ADDRESS, _ADDRESS, 0, capacity, forms=(_FIELDS, ()), counters=1)
    return Standalone(action, _ADDRESS, _ADDRESS, 0, capacity, _FIELDS)


_STORES: Final[st.SearchStrategy[Any]] = st.lists(st.tuples(st.integers(0, 80), _WORDS), max_size=12)
_LOOKS: Final = st.lists(st.tuples(_STORES, st.booleans()), min_size=1, max_size=6)
RINGS: Final = Kind("rings", st.tuples(st.sampled_from(list(Action)), st.integers(0, 4), _LOOKS), _run)
