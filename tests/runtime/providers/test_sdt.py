"""Static probes in running kernels."""

from dataclasses import replace

import pytest

from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.registry import NAMES
from kinst.targets.probe import ProbeName
from tests.runtime.providers.traced import SAMPLES, names_of, sample, traced


@pytest.mark.parametrize("arch", NAMES)
def test_static_probes_fire_with_their_arguments(arch: str) -> None:
    run = traced(sample(arch), ("callout_execute:::", "fbt::callout_execute:entry"))
    module = f"kernel-{arch}"
    assert names_of(run.providers, ProbeName("callout_execute", "", "", "")) == [
        f"callout_execute:{module}:callout_execute:callout_start",
        f"callout_execute:{module}:callout_execute:callout_end",
    ]
    seen: list[tuple[str, int]] = []

    def action(firing: Firing) -> None:
        probe = run.providers.probe(firing.enabling.probe)
        assert probe is not None
        seen.append((probe.name, firing.argument(0)))
        assert probe.name == "entry" or firing.argument(1) == 0

    assert run.enable("callout_execute:::", action) == 2
    assert run.enable("fbt::callout_execute:entry", action) == 1
    assert run.run() == (SAMPLES / "kernel.out").read_text()
    entries = [argument for name, argument in seen if name == "entry"]
    assert len(entries) > 20
    assert [name for name, _ in seen] == ["entry", "callout_start", "callout_end"] * len(entries)
    assert [argument for _, argument in seen] == [argument for argument in entries for _ in range(3)]


@pytest.mark.parametrize("arch", NAMES)
def test_args_have_the_types_that_the_image_declares(arch: str) -> None:
    run = traced(sample(arch), ("callout_execute:::callout_end",))
    (identifier,) = run.providers.described("callout_execute:::").tolist()
    assert run.providers.argument_types(identifier) == ("struct callout *",)


@pytest.mark.parametrize("arch", NAMES)
def test_a_disabled_static_probe_costs_nothing(arch: str) -> None:
    run = traced(sample(arch), ("callout_execute:::",))
    loaded = run.sites._patched.loaded
    addresses = run.sites.manifest.sites["address"].tolist()
    size = int(run.sites.manifest.sites["size"][0])
    places = [loaded.physical(address) for address in addresses]
    originals = [loaded.image.read(address, size) for address in addresses]

    def memory() -> list[bytes]:
        return [run.system.memory.read(place, size) for place in places if place is not None]

    run.arm()
    assert memory() == originals
    run.enable("callout_execute:::callout_start", lambda _firing: None)
    run.arm()
    assert [now != before for now, before in zip(memory(), originals, strict=True)] == [True, False]
    run.providers.disable(run.providers.enabled)
    run.arm()
    assert memory() == originals


@pytest.mark.parametrize("arch", NAMES)
def test_semaphores_count_us_while_a_probe_is_enabled(arch: str) -> None:
    run = traced(sample(arch), ("callout_execute:::",))
    address = run.host.address_of("operations")  # any variable will do
    assert address is not None
    shared, own = address, address + 2
    start, end = run.sites.manifest.static
    static = (replace(start, semaphores=(shared,)), replace(end, semaphores=(shared, own)))
    run.sites.manifest = replace(run.sites.manifest, static=static)
    place = run.sites._patched.loaded.physical(address)
    assert place is not None
    memory = run.system.memory
    memory.write(place, b"\xff\xff\x05\x00")  # one is at its end already

    def counts(*descriptions: str) -> tuple[int, int]:
        run.providers.disable(run.providers.enabled)
        for description in descriptions:
            run.enable(description, lambda _firing: None)
        run.arm()
        return memory.load(place, 2), memory.load(place + 2, 2)

    assert counts() == (0xFFFF, 5)
    assert counts("callout_start") == (0, 5)
    assert counts("callout_start", "callout_end") == (0, 6)
    assert counts("callout_end") == (0, 6)
    assert counts() == (0xFFFF, 5)
