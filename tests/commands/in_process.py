"""A command and its words -> what a process of its own would come to, without the half second that starting one takes.

For tests of what a command prints. Those of the process itself (signals, pipes, terminals, what is imported) start one.
"""

from subprocess import CompletedProcess

from click.testing import CliRunner

from kinst.rewriter import cli
from kinst.rewriter.commandline.command import Command
from kinst.runtime.cli import run
from kinst.runtime.fuzzing.cli import fuzz


def kinst_run(*arguments: object) -> CompletedProcess[str]:
    """kinst-run; a traceback is a failure."""
    return _completed(run, "kinst-run", arguments)


def kinst_fuzz(*arguments: object) -> CompletedProcess[str]:
    """kinst-fuzz; a traceback is a failure."""
    return _completed(fuzz, "kinst-fuzz", arguments)


def command(function: str, *arguments: object) -> CompletedProcess[str]:
    """A command of `kinst.rewriter.cli`, by its function's name; a traceback is a failure."""
    return _completed(getattr(cli, function), "kinst", arguments)


def _completed(of: Command, name: str, arguments: tuple[object, ...]) -> CompletedProcess[str]:
    words = [str(one) for one in arguments]
    result = CliRunner().invoke(of, words, prog_name=name)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return CompletedProcess(words, result.exit_code, result.stdout, result.stderr)
