"""Arguments of inlined copies against gdb, which sees the registers and memory of the very firing: at every instruction
of some functions' copies that the kernels execute."""

from random import Random

import pytest

from kinst.targets.debuginfo.inline_search import InlineSearch
from tests.gated import long_where
from tests.system.cases import BY_NAME, SAMPLES
from tests.system.inline_firings import Guest, compare

FUNCTIONS = {**{case.image: 25 for case in SAMPLES}, "gnumach": 40}
LEAST = {**{case.image: 300 for case in SAMPLES}, "gnumach": 100}


@pytest.mark.parametrize("name", long_where([*FUNCTIONS], lambda name: name == "gnumach"))
def test_no_value_is_wrong_and_none_is_missing(name: str) -> None:
    case = BY_NAME[name]
    guest = Guest(case.path, case.machine, case.until, case.asks)
    names = InlineSearch(guest.opened.image).names("*")
    found = compare(guest, Random(4).sample(names, FUNCTIONS[name]), most=1)
    assert not found.differ
    assert found.both.total() > LEAST[name]
    assert found.neither.total() > 10
