"""How a run ended -> its exit status. The only table of these; `docs/guide/ends.md` documents it."""

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
        said: the status that a clause gave to exit(), if one has called it: it takes precedence.
        guest: the exit code that the guest gave when it switched itself off.
        is_unmet: no line of the console matched --until.
    """
    if said is not None:
        return said & 0xFF
    return _OWN.get(end) or (NOT_MET if is_unmet else 0) or guest
