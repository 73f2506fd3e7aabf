"""What holds for all tests of a process."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

import hypothesis
import pytest

from kinst.rewriter.commandline.entry import NEW_OBJECTS
from tests.dearest import Dearest
from tests.gated import of_later_turns, takes_turns
from tests.halves import Halves


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `poe test` adds."""
    parser.addoption("--halves", action="store_true", help="run tests from both ends, by two processes that share more")


def pytest_configure(config: pytest.Config) -> None:
    """What is dear is told."""
    config.pluginmanager.register(Dearest())
    # A host that has others to serve draws slowly, and runs slowly: neither is a defect.
    patient = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=patient)
    hypothesis.settings.load_profile("patient")
    if config.option.halves and not config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Halves())


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a fresh clone to compile all tests takes half a minute, with pytest's assertions: every other worker begins at
    the end, so that two compile each file once. What cannot be imported is told when it is collected."""
    number = str(getattr(session.config, "workerinput", {}).get("workerid", "gw0")).removeprefix("gw")
    if int(number) % 2 and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        for name in _backwards(session.config):
            with suppress(Exception):
                import_module(name)


def _backwards(config: pytest.Config) -> Iterator[str]:
    ignored = [config.rootpath / folder for folder in config.getoption("ignore") or ()]
    paths = (path for folder in config.args for path in (config.rootpath / folder).rglob("test_*.py"))
    for path in sorted(paths, reverse=True):
        if not any(map(path.is_relative_to, ignored)):
            yield ".".join(path.relative_to(config.rootpath).with_suffix("").parts)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before those that are long are left out."""
    found = {item.nodeid: item for item in items if takes_turns(item) and not item.get_closest_marker("long")}
    for name in of_later_turns(found):
        found[name].add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """The tests themselves are never garbage: each run of a guest looks for some, and would look at half a million
    objects."""
    gc.set_threshold(NEW_OBJECTS)
    _keep()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Nor is what a file of tests imported, or keeps for others: the libraries of an engine are as many again."""
    yield
    if nextitem is not None and nextitem.path != item.path:
        _keep()


def _keep() -> None:
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """What is frozen is not cleared away at the end, which LIEF's bindings take for a leak."""
    gc.unfreeze()
