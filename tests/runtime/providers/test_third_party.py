"""A provider of another package: samples/providers, as it is installed, on the three sample kernels."""

import importlib.metadata
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime.cli import run
from kinst.runtime.providers.host import ImageHost, ProviderHost
from kinst.runtime.providers.plugged import asks_for, installed_providers
from kinst.runtime.providers.provider import Provider, ProviderError
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.registry import NAMES
from kinst.targets.c_types import NoImageTypes
from kinst.targets.probe import ProbeName
from tests.runtime.providers.traced import SAMPLES, names_of, sample, traced

PACKAGE = SAMPLES / "providers"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package in a folder of its own, with the metadata that an installer would write."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    install(tmp_path, project["name"], points)
    for module in PACKAGE.glob("*.py"):
        (tmp_path / module.name).write_text(module.read_text())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "kinst_rpc", raising=False)
    return tmp_path


def install(folder: Path, name: str, points: str) -> None:
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


def rpc(host: ProviderHost) -> Provider:
    (provider,) = installed_providers(host, lambda name: name == "rpc")
    return provider


@pytest.mark.parametrize("arch", NAMES)
def test_probes_come_from_the_image_and_fire_with_their_arguments(installed: Path, arch: str) -> None:
    run = traced(sample(arch), (), [rpc])
    found = names_of(run.providers, ProbeName("rpc", "", "", ""))
    assert found == [
        f"rpc:v{version}:{procedure}:{name}"
        for version in (2, 3)
        for procedure in ("null", "getattr", "lookup", "read", "write")
        for name in ("start", "done")
    ]
    counts: Counter[str] = Counter()
    open_requests: list[int] = []

    def action(firing: Firing) -> None:
        probe = run.providers.probe(firing.enabling.probe)
        assert probe is not None
        counts[f"{probe.module} {probe.function} {probe.name}"] += 1
        request = firing.argument(0)
        version = run.host.memory.load(request + 4, 4)
        assert probe.module == f"v{version}"
        if probe.name == "start":
            open_requests.append(request)
        else:
            assert open_requests.pop() == request
            counts[f"{probe.module} {probe.function} failed"] += firing.argument(1) != 0
        assert firing.argument(2) == 0

    assert run.enable("rpc:::", action) == 20
    console = run.run()
    assert console == (SAMPLES / "kernel.out").read_text()
    for version in (2, 3):
        (line,) = [line for line in console.splitlines() if line.startswith(f"rpc: v{version} ")]
        words = line.removesuffix(" (calls/errors)").split()[2:]
        for procedure, numbers in zip(words[::2], words[1::2], strict=True):
            key = f"v{version} {procedure}"
            assert numbers == f"{counts[f'{key} start']}/{counts[f'{key} failed']}"
            assert counts[f"{key} start"] == counts[f"{key} done"] > 0


def test_types_of_arguments(installed: Path) -> None:
    run = traced(sample("arm64"), (), [rpc])
    start, done = run.providers.described("rpc:v2:read:").tolist()
    assert run.providers.argument_types(start) == ("struct rpc_request *",)
    assert run.providers.argument_types(done) == ("struct rpc_request *", "int")


@pytest.mark.parametrize("arch", NAMES)
def test_points_are_armed_only_while_a_probe_is_enabled_and_shared_with_fbt(installed: Path, arch: str) -> None:
    run = traced(sample(arch), ("fbt::rpc_call:entry",), [rpc])
    run.arm()
    assert not run.sites.is_armed.any()
    run.enable("rpc:v3:lookup:done", lambda _firing: None)
    run.arm()
    assert run.sites.is_armed.all()
    run.providers.disable(run.providers.enabled)
    assert run.sites.is_stale
    run.arm()
    assert not run.sites.is_armed.any()
    order: list[str] = []
    run.enable("rpc:v2:null:start", lambda _firing: order.append("rpc"))
    run.enable("fbt::rpc_call:entry", lambda _firing: order.append("fbt"))
    run.run()
    nulls = order.count("rpc")
    assert nulls > 0
    assert order.count("fbt") > nulls
    assert all(order[at - 1] == "fbt" for at, one in enumerate(order) if one == "rpc")


def test_an_operation_that_is_in_no_table_gets_probes_when_it_is_called(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = __import__("kinst_rpc")
    monkeypatch.setattr(module, "VERSIONS", 1)  # as if version 3 were registered while the kernel runs
    run = traced(sample("riscv64"), (), [rpc])
    assert len(run.providers.match(ProbeName("rpc", "v3", "", ""))) == 0
    created: list[str] = []
    fired: Counter[str] = Counter()

    def action(firing: Firing) -> None:
        fired[str(run.providers.probe(firing.enabling.probe))] += 1

    def created_now(identifiers: Any) -> None:
        created.extend(str(run.providers.probe(number)) for number in identifiers.tolist())
        run.providers.enable(identifiers, action)

    run.providers.on_create(created_now)
    run.enable("rpc:v2:null:start", action)
    run.run()
    assert sorted(created) == sorted(
        f"rpc:v3:{procedure}:{name}"
        for procedure in ("null", "getattr", "lookup", "read", "write")
        for name in ("start", "done")
    )
    assert fired["rpc:v3:read:start"] == fired["rpc:v3:read:done"] > 1
    assert fired["rpc:v2:null:start"] > 1


def test_an_image_without_the_function_has_no_probes(installed: Path, tmp_path: Path) -> None:
    image = tmp_path / "other.elf"
    image.write_bytes(sample("amd64").read_bytes().replace(b"\0rpc_call\0", b"\0rpc_gone\0"))
    run = traced(image, ("fbt::kmalloc:entry",), [rpc])
    assert names_of(run.providers, ProbeName("rpc", "", "", "")) == []
    assert run.host.names == ()


def test_a_package_that_breaks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "broken-one", "[kinst.providers]\nbroken = kinst_broken_module:make\n")
    monkeypatch.syspath_prepend(tmp_path)
    host = ImageHost(open_source(Source(sample("amd64"))).program.image, NoImageTypes())
    with pytest.raises(
        ProviderError, match=r"provider broken of broken-one: ModuleNotFoundError: .*kinst_broken_module"
    ):
        installed_providers(host)
    assert installed_providers() == []


def test_only_our_own_is_installed_here() -> None:
    assert importlib.metadata.entry_points(group="kinst.providers").names == {"syscall"}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageHost:
    """A host for a package that cannot be loaded."""
    install(tmp_path, "broken-one", "[kinst.providers]\nrpc = kinst_broken_module:make\n")
    monkeypatch.syspath_prepend(tmp_path)
    return ImageHost(open_source(Source(sample("amd64"))).program.image, NoImageTypes())


@pytest.mark.parametrize("description", ["rpc:::", "r*:::done", "rpc:v2:read:done", "99999"])
def test_a_package_runs_where_it_is_asked_for(description: str, broken: ImageHost) -> None:
    with pytest.raises(ProviderError, match="broken-one"):
        installed_providers(broken, asks_for([description], {"1004"}))


@pytest.mark.parametrize("description", ["fbt::rpc_call:entry", ":::rpc", ":::", "kinst::rpc:", ":rpc::", "1004"])
def test_a_package_does_not_run_where_it_is_not(description: str, broken: ImageHost) -> None:
    assert installed_providers(broken, asks_for([description], {"1004"})) == []


@pytest.mark.parametrize("operation", ["provide", "enable", "arguments", "called"])
def test_an_exception_names_the_package(operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it comes: while probes are made, enabled, looked at, or while the guest runs."""
    info = (PACKAGE / "kinst_rpc.py").read_text()
    broken = {
        "provide": "def provide(self, probes, wanted): raise RuntimeError('no')",
        "enable": "def enable(self, identifiers, action): raise RuntimeError('no')",
        "arguments": "def arguments(self, identifier): raise RuntimeError('no')",
        "called": "def _entered(self, firing): raise RuntimeError('no')",
    }[operation]
    info += f"\n\nclass Broken(RpcProvider):\n    {broken}\n"
    (tmp_path / "kinst_broken.py").write_text(info)
    install(tmp_path, "broken-one", "[kinst.providers]\nrpc = kinst_broken:Broken\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = [str(sample("arm64")), "-qn", "rpc:::start { trace(args[0]); }", "--console", str(tmp_path / "console")]
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert result.exit_code == 1
    assert "provider rpc of broken-one: RuntimeError: no" in result.stderr
