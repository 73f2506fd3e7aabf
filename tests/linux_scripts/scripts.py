"""All scripts over one kernel: a boot, the workload alone, and twice under scripts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.linux_scripts.checks import CHECKS
from tests.linux_scripts.guest import BOOT_SCRIPT, Guest
from tests.linux_scripts.measures import BY_FUNCTION, MEASURES, slow_initcalls
from tests.linux_scripts.told import Figure

TOGETHER: Final = CHECKS | MEASURES
ALL: Final = frozenset((*TOGETHER, *BY_FUNCTION, BOOT_SCRIPT))


def compared(kernel: str, folder: Path) -> Iterator[tuple[str, Figure]]:
    """Names of scripts with what they said and what the guest says, as soon as both are known."""
    guest = Guest(kernel, folder)
    for figure in slow_initcalls(guest.boot()):
        yield BOOT_SCRIPT, figure
    plain = guest.plain()
    for checks, of_functions in ((BY_FUNCTION, True), (TOGETHER, False)):
        run = guest.run(tuple(checks), plain, of_functions=of_functions)
        for script, check in checks.items():
            for figure in check(run):
                yield script, figure
