"""The commands by name, and one of them run as a user would."""

from click.testing import CliRunner, Result

from kinst.rewriter import cli
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.inlining import inlinecall_cli
from kinst.runtime.batch.cli import batch as kinst_batch
from kinst.runtime.cli import run as kinst_run
from kinst.runtime.fuzzing.cli import fuzz as kinst_fuzz

COMMANDS: dict[str, Command] = {
    "kinst-rewrite": cli.rewrite,
    "kinst-list": cli.list_probes,
    "kinst-diff": cli.diff,
    "kinst-inlinecall": inlinecall_cli.inlinecall,
    "kinst-run": kinst_run,
    "kinst-batch": kinst_batch,
    "kinst-fuzz": kinst_fuzz,
}


def run(name: str, *arguments: object, **environment: str) -> Result:
    """One command; a traceback is a failure."""
    result = CliRunner(env=environment).invoke(COMMANDS[name], [str(one) for one in arguments], prog_name=name)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
