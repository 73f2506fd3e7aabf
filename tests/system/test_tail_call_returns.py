"""fbt's returns, those of tail calls among them, come in the order and with the values that a hook of raw Unicorn sees
on the plain image, which runs as long and prints the same."""

import pytest

from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime.tracing.hits import Hit
from kinst.targets.errors import MachineError
from tests.system.activations import Activations, with_refused_returns
from tests.system.cases import SAMPLES, Case
from tests.system.runs import run

TAIL_CALLS = 400  # that return, at least


class Returns:
    """What probes tell: (function, value), without those that left nobody knows where to, which are no C functions."""

    def __init__(self) -> None:
        self.returns: list[tuple[str, int]] = []
        self.tail_calls = 0

    def fired(self, hit: Hit) -> None:
        self.tail_calls += hit.returned != 0
        try:
            value = hit.argument(1)
        except MachineError:
            return
        self.returns.append((hit.probe.function, value))


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)
def test_order_and_values(case: Case) -> None:
    opened = open_source(Source(case.path))
    wanted: list[Activations] = []
    plain = run(case, prepare=lambda guest: wanted.append(Activations(guest, opened.program)))
    assert wanted[0].error is None
    found, refused = Returns(), with_refused_returns(opened)
    patched = run(case, ["fbt:::return"], action=found.fired)
    certain = [[event for event in events if event[0] not in refused] for events in (found.returns, wanted[0].returns)]
    assert certain[0] == certain[1]
    assert found.tail_calls > TAIL_CALLS
    assert (patched.time, patched.console) == (plain.time, plain.console)
