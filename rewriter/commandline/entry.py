"""A console script -> its command. Until everything is imported, Ctrl-C ends the process at once, as SIGINT does by
default.

Importing the commands takes up to a second, and Python's own handler would raise anywhere in it.
"""

import gc
import os
import signal
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from kinst.rewriter.commandline.reporting import reported

# New objects after which Python looks for garbage, 700 by default: what a command makes stays as long as it runs, and a
# tenth of its start-up went into looking.
NEW_OBJECTS: Final = 50_000


def start(module: str, command: str) -> None:
    """Import and run a command, which handles Ctrl-C itself as soon as it can."""
    gc.set_threshold(NEW_OBJECTS)
    # numpy's BLAS, which nothing here calls, starts a thread per CPU when it is loaded: 0.05 s of 0.45.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        run = getattr(import_module(module), command)
        signal.signal(signal.SIGINT, handler)
        with reported(Path(sys.argv[0]).name):  # --help and --version, too, may fail to write
            run()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


kinst_rewrite = partial(start, "kinst.rewriter.cli", "rewrite")
kinst_list = partial(start, "kinst.rewriter.cli", "list_probes")
kinst_diff = partial(start, "kinst.rewriter.cli", "diff")
kinst_inlinecall = partial(start, "kinst.rewriter.inlining.inlinecall_cli", "inlinecall")
kinst_batch = partial(start, "kinst.runtime.batch.cli", "batch")
kinst_fuzz = partial(start, "kinst.runtime.fuzzing.cli", "fuzz")
kinst_run = partial(start, "kinst.runtime.cli", "run")
kinst_samples = partial(start, "kinst.samples.command", "copy_samples")
