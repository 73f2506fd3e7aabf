"""The option of kinst-run that opens Python where a probe fires."""

from typing import TYPE_CHECKING, Any, Final

from kinst.rewriter.commandline.option import option, together
from kinst.targets.errors import UsageError

if TYPE_CHECKING:
    from kinst.runtime.tracing.hits import PythonAction

shell_options: Final = together(
    option(
        "--shell",
        group="Run",
        is_rare=True,
        metavar="PROBE",
        help="When a probe fires for the first time, open a prompt of Python's, IPython's if it is installed: hit is "
        'what fired, trace["init_task"].comm a typed value, and Tab completes names of the image. END: when the run is '
        "over. Standard input is the prompt's; from a pipe its lines are run. Ctrl-D goes on.",
        brief="Open Python when a probe first fires.",
    ),
)


def shell_actions(given: dict[str, Any]) -> tuple["PythonAction", ...]:
    """What --shell does when its probe fires. Raises UsageError: it is for our own machine."""
    if given["shell"] is None:
        return ()
    if given["is_top"] or given["on"] is not None:
        raise UsageError(f"--shell: is for our own machine, and {'--top' if given['is_top'] else '--on'} has another")
    from kinst.runtime.tracing.hits import PythonAction  # with numpy: --help and a wrong option need none
    from kinst.runtime.tracing.python.shell import Shell

    return (PythonAction(given["shell"], Shell()),)
