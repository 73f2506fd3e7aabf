"""A run of tests by two processes, which share what was collected: `pytest --halves`.

Workers of xdist collect each for itself (25 s of computing for 16,000 tests), and hand each report of each test to a
third process: a test that does nothing takes 4.5 ms of computing there, and 1.5 ms here. One process collects and forks
itself; one runs tests from the first on, the other from the last on, until they meet. At the end the forked one hands
its reports over, so that one summary tells of all.
"""

import atexit
import os
import pickle
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from typing import IO, NoReturn

import pytest


class Claims:
    """How many tests nobody has begun: a byte in a pipe for each, and who takes one runs its next. As one counts from
    the first test and the other from the last, no test is run twice and none is left out."""

    def __init__(self, count: int) -> None:
        """Raises: OSError, if a pipe does not hold as many bytes."""
        self._taken, given = os.pipe()
        os.set_blocking(given, False)
        try:
            if os.write(given, bytes(count)) < count:
                raise OSError(f"a pipe does not hold {count} bytes, one a test")
        finally:
            os.close(given)

    def claim(self) -> bool:
        """Whether there was one left."""
        return bool(os.read(self._taken, 1))

    def give_up(self) -> None:
        """Nobody begins another one."""
        while os.read(self._taken, 1 << 16):
            pass


class Halves:
    """A plugin of a process that is to fork."""

    def __init__(self) -> None:
        self._reports: list[pytest.TestReport] | None = None  # of the forked process

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what is to be handed over."""
        if self._reports is not None:
            self._reports.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        """In the place of pytest's own, which does what cannot be halved."""
        if session.testsfailed or session.config.option.collectonly or len(session.items) < 2:
            return None
        claims = Claims(len(session.items))
        sys.stdout.flush()
        sys.stderr.flush()
        with tempfile.TemporaryFile() as handed:
            parent = os.getpid()
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # OpenBLAS has a thread
                child = os.fork()
            if not child:
                self._second_half(session, claims, handed, parent)
            try:
                _run(session, iter(session.items), claims)
            finally:
                claims.give_up()
                _take_over(session, handed, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        _ended_early(session)
        return True

    def _second_half(self, session: pytest.Session, claims: Claims, handed: IO[bytes], parent: int) -> NoReturn:
        """The forked process, from its first test to its end."""
        status = 1
        atexit._clear()  # what the fork found at its end, such as temporary folders, is the other's
        try:
            self._reports = []
            _be_silent(session.config)
            try:
                _run(session, reversed(session.items), claims, parent)
            except (session.Failed, session.Interrupted):
                claims.give_up()
            pickle.dump(self._reports, handed)
            handed.flush()
            status = 0
        except KeyboardInterrupt:
            pass
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            atexit._run_exitfuncs()
            os._exit(status)


def _run(session: pytest.Session, items: Iterator[pytest.Item], claims: Claims, parent: int = 0) -> None:
    """Run tests in this order until all are claimed; the next is claimed before, as fixtures are kept for it."""
    item = next(items) if claims.claim() else None
    while item is not None:
        following = next(items) if claims.claim() else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        _ended_early(session)
        if parent and os.getppid() != parent:
            os._exit(1)  # nobody waits for what it finds
        item = following


def _ended_early(session: pytest.Session) -> None:
    """As pytest's own loop does: for `-x` and `--maxfail`, and for who asked for an end."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _be_silent(config: pytest.Config) -> None:
    """Dots are the other's; and what tests print is captured in files, which must not be the other's."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.close(silent)
    capture.start_global_capturing()
    capture.suspend_global_capture()


def _take_over(session: pytest.Session, handed: IO[bytes], status: int) -> None:
    """What the other half found, as if it had been found here."""
    if status:
        session.shouldfail = f"the forked half of the tests ended with status {status}, its results are lost"
        return
    handed.seek(0)
    for report in pickle.load(handed):
        session.config.hook.pytest_runtest_logreport(report=report)
