"""The console scripts in a folder, for shells and for whatever else finds programs by their names."""

import os
import shlex
import sys
from pathlib import Path

from tests.commands.all_commands import COMMANDS

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}", "TERM": "dumb"}


def environment_with_commands(folder: Path) -> dict[str, str]:
    """The environment in which the commands are found; they are put into a folder `bin` of `folder`."""
    scripts = folder / "bin"
    scripts.mkdir()
    for name in COMMANDS:
        function = name.replace("-", "_")
        entry = f"from kinst.rewriter.commandline.entry import {function} as main"
        code = f"import sys; {entry}; sys.argv[0] = {name!r}; main()"
        launcher = scripts / name
        launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(code)} "$@"\n')
        launcher.chmod(0o755)
    return {**ENVIRONMENT, "PATH": f"{scripts}:{os.environ['PATH']}"}
