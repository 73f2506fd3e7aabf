"""The probe names of a command line -> the probes that they match in an image, and errors for those without any."""

from collections.abc import Iterable

from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.naming.static_sites import SDT, provider_names, static_records
from kinst.targets.errors import ProbeError
from kinst.targets.image import Image
from kinst.targets.probe import ProbeName, parse_probe_names


def probe_names(specs: Iterable[str], image: Image) -> list[ProbeName]:
    """The probe names in some SPECs. They may use the providers of the image's own static probes.

    Raises:
        ProbeNameError: one of them is not a probe name.
    """
    providers = provider_names(image)
    return [name for spec in specs for name in parse_probe_names(spec, providers=providers)]


def default_specs(image: Image, *, disassemble: bool) -> tuple[str, ...]:
    """What is listed if no name is given."""
    if disassemble:
        return ("kinst:::",)
    return ("fbt:::", f"{SDT}:::") if static_records(image).providers else ("fbt:::",)


def check_outcomes(resolution: Resolution, *, strict: bool) -> None:
    """Raise ProbeError if a name came to nothing, or if something was refused and `strict` forbids that."""
    errors = [str(outcome.error) for outcome in resolution.outcomes if outcome.error is not None]
    notes = [outcome.note() for outcome in resolution.outcomes if outcome.error is None and outcome.note()]
    if errors or (strict and notes):
        code = max((one.error.exit_code for one in resolution.outcomes if one.error is not None), default=1)
        raise ProbeError("\n".join([*errors, *(notes if strict else [])])).with_exit_code(code)
