"""How a run ended -> the exit status that tells it: the one table of these, which `docs/guide/ends.md` shows."""

from typing import Final

from kinst.runtime.machine.configuration import End

NOT_MET: Final = 3  # the run ended, and no line of the console had matched --until
PANICKED: Final = 4
# GuestError has 5, NothingLeftError 6.
_OWN: Final = {End.GUEST_PANIC: PANICKED, End.PANIC: 1}


def exit_status(end: End, *, said: int | None, guest: int, is_unmet: bool) -> int:
    """The status of a run without an error.

    Args:
        end: how it ended.
        said: what a clause gave to exit(), if one has called it: this is what counts then.
        guest: the exit code that the guest gave when it switched itself off.
        is_unmet: a line of the console was waited for, and did not come.
    """
    if said is not None:
        return said & 0xFF
    return _OWN.get(end) or (NOT_MET if is_unmet else 0) or guest
