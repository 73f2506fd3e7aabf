"""A probe name whose module or name field matches no probe of an image -> the error, with what was probably meant."""

import difflib
from collections.abc import Sequence
from typing import Final

from kinst.rewriter.naming.static_sites import SDT
from kinst.targets.errors import KinstError, ProbeError, ProbeNameError
from kinst.targets.probe import PROVIDERS, ProbeName, is_glob
from kinst.targets.static_probes import StaticProbe

_FEW: Final = 8  # static probes that a message lists


def no_module(name: ProbeName, image: str) -> KinstError:
    """For a name whose module is not that of the image, `image`."""
    why = _misplaced(name.module) or _loaded(name.module)
    return ProbeError(f"{name}: no module {name.module!r}: this image is {image!r}{why}")


def no_kind(name: ProbeName, static: Sequence[StaticProbe]) -> KinstError:
    """For a name whose last field no provider has; `static` are the probes that the image has by itself."""
    if not name.provider:
        return _misnamed(name, "a probe in an image is entry, return or an offset")
    if name.matches_provider("kinst"):
        return _misnamed(name, "a kinst probe is an offset into the function")
    if name.matches_provider("fbt"):
        return _misnamed(name, "an fbt probe is entry or return")
    here = [f"{probe.provider}::{probe.function}:{probe.name}" for probe in static]
    own = [text for text, probe in zip(here, static, strict=True) if name.matches_provider(probe.provider)]
    if own or (name.provider == SDT and here):
        nearest = difflib.get_close_matches(f"{name.provider}::{name.function}:{name.name}", own or here, _FEW, 0.0)
        return ProbeError(f"{name}: no such static probe; there are {', '.join(nearest)}")
    return ProbeNameError(f"{name}: provider {name.provider!r} has no probes in an image: kinst and fbt have")


def nothing(name: ProbeName) -> str:
    """Why a name that could name something does not."""
    text = "matches no instruction"
    if name.function or not is_glob(name.name):
        return text
    return f"{text}: {name.name} is for entry, return and offsets; those of the functions {name.name} are {name.name}:"


def _misnamed(name: ProbeName, what: str) -> KinstError:
    """`what` says what the last field may be. The fields that are left out are the left ones: a single word is a
    name."""
    alone = "" if name.function or name.provider else f"; those of a function {name.name} are {name.name}:"
    return ProbeNameError(f"{name}: the name of {what}, not {name.name!r}{_misplaced(name.function) or alone}")


def _loaded(module: str) -> str:
    """What to do for a module that the image loads."""
    if is_glob(module):
        return ""
    return f"; for one that it loads, kinst-run finds {module}.ko in the --initrd, or --module {module}=FILE names it"


def _misplaced(field: str) -> str:
    return f"; {field} is a provider, the first of four fields: {field}::FUNCTION:NAME" if field in PROVIDERS else ""
