"""What click finds wrong with a command line -> one line in our form, ``what: why``, with what was probably meant."""

from collections.abc import Mapping

import click

from kinst.targets.nearest import nearest
from kinst.targets.visible import visible


def wrong_usage(error: click.UsageError, name: str, absent: Mapping[str, str]) -> str:
    """The line for an error in the command line of the command `name`, which has a reason for the options `absent`."""
    match error:
        case click.NoSuchOption() if error.option_name in absent:
            return f"{error.option_name}: no such option: {absent[error.option_name]} ({name} --help)"
        case click.NoSuchOption():
            return f"{visible(error.option_name)}: no such option{_near(error)} ({name} --help)"
        case click.MissingParameter():
            return f"{_spelling(error)}: is missing: {_usage(error, name)}"
        case click.BadOptionUsage():
            return f"{visible(error.option_name)}: {_reason(error)}"
        case click.BadParameter():
            return f"{_spelling(error)}: {_reason(error)}"
        case _:
            return f"{_reason(error)}: {_usage(error, name)}"


def _near(error: click.NoSuchOption) -> str:
    """Options that are shown in help and look similar."""
    parameters = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
    known = [
        spelling
        for one in parameters
        if isinstance(one, click.Option) and not one.hidden
        for spelling in (*one.opts, *one.secondary_opts)
    ]
    return nearest(error.option_name, known)


def _spelling(error: click.BadParameter) -> str:
    param = error.param
    if param is None:
        return "command line"
    return param.opts[-1] if isinstance(param, click.Option) else (param.metavar or param.human_readable_name)


def _reason(error: click.UsageError) -> str:
    """click's words, on one line, without a capital and a full stop."""
    text = visible(error.message).rstrip(".")
    return text[:1].lower() + text[1:]


def _usage(error: click.UsageError, name: str) -> str:
    usage = "" if error.ctx is None else " ".join(error.ctx.command.collect_usage_pieces(error.ctx))
    return f"{name} {usage}".rstrip()
