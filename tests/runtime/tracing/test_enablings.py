"""Clauses and probes -> actions in program order, and epids."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.combining import ClauseAction, Combining
from kinst.runtime.providers.provider import Action, Probe
from kinst.runtime.tracing.enablings import Enabled, Enablings
from kinst.runtime.trap.trap import Firing
from kinst.targets.probe import ProbeName


class Recording:
    """Stands in for the providers: remembers the action of each probe."""

    def __init__(self) -> None:
        self.actions: dict[int, Action] = {}

    def enable(self, identifiers: NDArray[np.intp], action: Action) -> None:
        self.actions.update(dict.fromkeys(identifiers.tolist(), action))


def made(*probes: list[int]) -> tuple[Enablings, Recording, list[int]]:
    ran: list[int] = []

    def clause(number: int) -> Callable[[Firing], None]:
        return lambda _firing: ran.append(number)

    pattern = ProbeName("rpc", "", "", "start")
    enabled = [Enabled(ClauseAction(clause(at)), np.array(ids, np.intp), pattern) for at, ids in enumerate(probes)]
    enablings = Enablings(enabled, Combining(None, None, None, None))
    recording = Recording()
    enablings.enable(recording)  # type: ignore[arg-type]
    return enablings, recording, ran


def test_a_probe_runs_its_clauses_in_program_order() -> None:
    _, recording, ran = made([4, 5, 6], [5], [1, 4, 5])
    expected = {1: [2], 4: [0, 2], 5: [0, 1, 2], 6: [0]}
    assert set(recording.actions) == set(expected)
    for probe, clauses in expected.items():
        ran.clear()
        recording.actions[probe](None)  # type: ignore[arg-type]
        assert ran == clauses


def test_probes_with_the_same_clauses_share_an_action() -> None:
    _, recording, _ = made(list(range(4, 1000)), list(range(4, 1000)))
    assert len(set(map(id, recording.actions.values()))) == 1


def test_epids_count_clause_by_clause() -> None:
    enablings, _, _ = made([4, 5, 6], [5], [1, 4, 5])
    assert [enablings.epid(0, probe) for probe in (4, 5, 6, 7)] == [1, 2, 3, 0]
    assert enablings.epid(1, 5) == 4
    assert [enablings.epid(2, probe) for probe in (1, 4, 5)] == [5, 6, 7]
    assert enablings.count == 7


def test_a_probe_made_later_is_enabled_where_it_matches() -> None:
    enablings, recording, ran = made([4], [5])
    assert enablings.enable_new(Probe(9, "rpc", "", "f", "start"), recording)  # type: ignore[arg-type]
    assert not enablings.enable_new(Probe(10, "rpc", "", "f", "done"), recording)  # type: ignore[arg-type]
    recording.actions[9](None)  # type: ignore[arg-type]
    assert ran == [0, 1]
    assert (enablings.epid(0, 9), enablings.epid(1, 9)) == (3, 4)
