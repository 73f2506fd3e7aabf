"""A D program -> what the C preprocessor makes of it, for -C."""

import re
from pathlib import Path
from typing import Final

from kinst.runtime.dlang.syntax.language import LATEST, Version, predefined
from kinst.runtime.dlang.syntax.literals import encode
from kinst.targets.errors import KinstError
from kinst.targets.values import dataclass

_MARKER: Final = re.compile(r'^# ([0-9]+) "<stdin>"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CppSettings:
    """What -C, -D, -U, -I, -H and -x cpppath ask for. `arguments` are the flags that cpp is given."""

    path: str = "cpp"
    arguments: tuple[str, ...] = ()
    prints_includes: bool = False
    version: Version = LATEST


def preprocess(text: str, *, file: str, settings: CppSettings) -> str:
    """The text with macros and includes expanded. Line markers say where each line was; for lines of the program itself
    they name no file. cpp's own messages go to our stderr. Raises KinstError if cpp cannot be run or fails."""
    import subprocess  # most programs have no cpp

    if text.startswith("#!"):
        text = text[text.find("\n") :] if "\n" in text else ""
    folder = str(Path(file).parent) if file else "."
    defined = (f"-D{definition}" for definition in predefined(settings.version))
    command = [settings.path, *defined, "-iquote", folder, *(["-H"] if settings.prints_includes else ())]
    try:
        done = subprocess.run(
            [*command, *settings.arguments, "-"], input=encode(text), stdout=subprocess.PIPE, check=False
        )
    except OSError as error:
        raise KinstError(f"failed to run the C preprocessor {settings.path}: {error.strerror}") from error
    if done.returncode:
        raise KinstError(f"the C preprocessor {settings.path} failed with status {done.returncode}")
    return _MARKER.sub(r'# \1 ""', done.stdout.decode("utf-8", "surrogateescape"))
