"""The life cycle of providers: registering, creating, finding, enabling, taking away."""

import re
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kinst.runtime.providers.dtrace import BEGIN, END, ERROR, DtraceProvider
from kinst.runtime.providers.provider import Privilege, Probe, ProviderError, Providers, Registration
from kinst.runtime.providers.stability import EVOLVING_ISA, PRIVATE, STABLE, Dependency, ProviderAttributes
from kinst.runtime.trap.trap import Firing
from kinst.targets.errors import ProbeNameError
from kinst.targets.probe import ProbeName, parse_probe_name
from tests.runtime.providers.hosts import ATTRIBUTES, Toy, TypedToy, firing_of, ids


def nothing(_firing: Firing) -> None:
    """An action."""


def something(_firing: Firing) -> None:
    """Another."""


def match(providers: Providers, text: str) -> list[int]:
    found: list[int] = providers.match(parse_probe_name(text, providers=providers.names)).tolist()
    return found


def test_identifiers_ascend_in_the_order_of_registration_and_creation() -> None:
    first, second = Toy("one", [("", "f", "a"), ("m", "g", "b")]), Toy("two", [("", "", "a")])
    providers = Providers([DtraceProvider(), first, second])
    assert [str(providers.probe(number)) for number in range(1, 7)] == [
        "dtrace:::BEGIN", "dtrace:::END", "dtrace:::ERROR", "one::f:a", "one:m:g:b", "two:::a",
    ]  # fmt: skip
    assert providers.probe(7) is None
    assert tuple(match(providers, "dtrace:::")) == (BEGIN, END, ERROR)
    assert match(providers, "a") == [4, 6]
    assert match(providers, "on*::*:a*") == [4]
    assert match(providers, "one:m::") == match(providers, "one:m.ko::") == [5]
    assert providers.names == ("dtrace", "one", "two")


def test_every_probe_is_what_has_a_function() -> None:
    providers = Providers([DtraceProvider(), Toy("toy", [("", "", "x"), ("", "f", "y"), ("m", "", "z")])])
    assert match(providers, ":::") == [5]
    assert match(providers, "*") == [1, 2, 3, 4, 5, 6]


def test_probes_are_made_on_demand_once_and_only_by_providers_that_are_meant() -> None:
    toy, other = Toy(), Toy("other")
    providers = Providers([toy, other])
    assert match(providers, "toy:::on-demand-1") == [1]
    assert match(providers, "toy:::on-demand-1") == [1]
    assert match(providers, "on-demand-2") == [2, 3]
    assert other.asked == [None, ProbeName("", "", "", "on-demand-2")]


def test_an_identifier_is_a_description() -> None:
    providers = Providers([DtraceProvider(), Toy("toy", [("", "f", "7")])])
    assert providers.described("2").tolist() == [2]
    assert providers.described("5").tolist() == providers.described("9" * 30).tolist() == []
    assert providers.described("toy::f:7").tolist() == [4]
    with pytest.raises(ProbeNameError, match="no provider 'toys'"):
        providers.described("toys:::")


def test_one_action_a_probe_and_disabling_what_is_enabled() -> None:
    toy, other = Toy("toy", [("", "f", "a"), ("", "f", "b")]), Toy("other", [("", "f", "c")])
    providers = Providers([toy, other])
    assert providers.enable(ids(3, 1, 1), nothing) == 2
    assert providers.enable(ids(1), something) == 1
    assert toy.actions == {1: something}
    assert other.actions == {3: nothing}
    assert providers.enabled.tolist() == [1, 3]
    providers.disable(ids(1, 2))
    providers.disable(ids(1, 2))  # would raise KeyError in the toy
    assert not toy.actions
    assert providers.enabled.tolist() == [3]


def test_unregistering_is_refused_while_probes_are_enabled() -> None:
    toy = Toy("toy", [("", "f", "a"), ("", "f", "b")])
    providers = Providers([DtraceProvider(), toy])
    providers.enable(ids(5), nothing)
    with pytest.raises(ProviderError, match="toy: cannot unregister: 1 of its probes are enabled"):
        providers.unregister(toy)
    providers.disable(ids(5))
    providers.unregister(toy)
    assert toy.destroyed == [4, 5]
    assert providers.match(ProbeName("toy", "", "", "")).tolist() == []
    providers.register(Toy("next", [("", "", "n")]))
    assert match(providers, "n") == [6]  # a number is never given twice
    with pytest.raises(ProviderError, match="not registered"):
        providers.unregister(toy)


def test_probes_that_a_provider_creates_by_itself_are_announced() -> None:
    toy = Toy()
    providers = Providers([DtraceProvider(), toy])
    told: list[int] = []
    providers.on_create(lambda identifiers: told.extend(identifiers.tolist()))
    match(providers, "on-demand-1")
    assert told == []
    assert toy.probes is not None
    created = toy.probes.create("m", "", "later")
    assert told == [created] == [5]
    assert match(providers, "later") == [5]


def test_arguments_and_attributes() -> None:
    providers = Providers([TypedToy("toy", [("", "f", "a"), ("", "f", "b")]), Toy("other", [("", "f", "c")])])
    assert providers.argument_types(1) == ("int", "uintptr_t")
    assert providers.argument_types(2) is providers.argument_types(3) is providers.argument_types(99) is None
    assert providers.attributes(1) == ATTRIBUTES
    assert providers.attributes(99) is None


def test_attributes_are_the_weakest_of_the_fields_that_a_probe_has() -> None:
    attributes = ProviderAttributes(STABLE, PRIVATE, EVOLVING_ISA, STABLE, STABLE)
    assert str(attributes.description("", "")) == "Stable/Stable/Common"
    assert str(attributes.description("", "f")) == "Evolving/Evolving/ISA"
    assert str(attributes.description("m", "f")) == "Private/Private/Unknown"
    assert [one.title for one in Dependency] == ["Unknown", "CPU", "Platform", "Group", "ISA", "Common"]


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        (SimpleNamespace(registration=Registration("x", ATTRIBUTES)), "x: lacks provide, enable, disable, destroy"),
        (SimpleNamespace(**dict.fromkeys(("provide", "enable", "disable", "destroy"), print)), "lacks a Registration"),
        (Toy("a b"), "'a b': its name cannot be written"),
        (Toy(""), "'': its name cannot be written"),
        (Toy("x" * 64), "longer than 63"),
        (Toy("toy", [("", "", "a:b")]), "toy: probe 'a:b': its name cannot be written"),
        (Toy("toy", [("m*", "", "a")]), "toy: probe 'm*': its module cannot be written"),
        (Toy("toy", [("", "", "x" * 64)]), "its name is longer than 63"),
    ],
)
def test_what_cannot_work_is_refused(provider: Any, why: str) -> None:
    with pytest.raises(ProviderError, match=re.escape(why)):
        Providers([provider])


def test_half_of_the_argument_operations_is_refused() -> None:
    toy = Toy()
    cast(Any, toy).arguments = lambda _identifier: ()
    with pytest.raises(ProviderError, match="toy: lacks argument: types and values of arguments come together"):
        Providers([toy])


def test_privileges_that_need_usermode_are_refused() -> None:
    toy = Toy()
    toy.registration = Registration("toy", ATTRIBUTES, Privilege.KERNEL | Privilege.USER)
    with pytest.raises(ProviderError, match="usermode"):
        Providers([toy])
    toy.registration = Registration("toy", ATTRIBUTES, Privilege.USER)
    assert len(Providers([toy]).names) == 1


def test_dtrace_fires_with_arguments_in_the_thread_it_is_given() -> None:
    dtrace = DtraceProvider()
    providers = Providers([dtrace])
    seen: list[tuple[int, int, list[int]]] = []

    def action(firing: Firing) -> None:
        seen.append((firing.enabling.probe, firing.thread, [firing.argument(index) for index in range(3)]))

    providers.enable(ids(BEGIN, ERROR), action)
    for identifier in (BEGIN, END):
        dtrace.fire(identifier, firing_of())
    dtrace.fire(ERROR, firing_of(), lambda index: index * 10)
    assert seen == [(BEGIN, 0, [0, 0, 0]), (ERROR, 0, [0, 10, 20])]


def test_many_probes_created_one_by_one_are_matched_as_columns() -> None:
    toy = Toy("toy", [("m", f"f{number}", "entry" if number % 2 else "return") for number in range(50_000)])
    providers = Providers([toy])
    found = providers.match(ProbeName("toy", "", "", "entry"))
    assert len(found) == 25_000
    assert found.dtype == np.intp
    assert providers.probe(int(found[0])) == Probe(2, "toy", "m", "f1", "entry")
