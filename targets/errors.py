"""What can go wrong, as one tree. A message reads "what: why", with the address and the symbol where there is one.

The exit code is on the class: 1 for input that cannot be used, 2 for a command line that makes no sense, more for how a
guest ended (`kinst.runtime.tracing.host.exit_status` has all of these).
"""

from typing import Self


class KinstError(Exception):
    """Anything a user can cause. Commands print it as ``command: message`` and exit with `exit_code`."""

    exit_code = 1

    def with_exit_code(self, code: int) -> Self:
        """The same error, with an exit code other than its class has."""
        self.exit_code = code
        return self


class UsageError(KinstError):
    """The command line contradicts itself or names something that does not exist."""

    exit_code = 2


class ImageError(KinstError):
    """The file is not an image we can read: not ELF, truncated, another machine, or damaged."""


class ProbeNameError(UsageError):
    """A probe name that does not parse: too many fields, a bad offset, an unknown provider."""


class ProbeError(KinstError):
    """A well-formed probe name that matches nothing usable; the message gives the reason and the nearest choice."""


class PatchError(KinstError):
    """Instructions of the user's own that cannot be written where they belong; the message says why."""


class ManifestError(KinstError):
    """A manifest that is damaged, or of another format."""


class DownloadError(KinstError):
    """A file cannot be fetched, or is not what it should be."""


class PlacementError(KinstError):
    """No room for trampolines: out of reach of the sites, or on top of something else."""


class MachineError(KinstError):
    """The machine cannot run this image: memory does not fit, no such machine, the guest stopped for good."""


class GuestError(MachineError):
    """The guest did something after which its CPU cannot go on."""

    exit_code = 5
    reason = "fault"  # why the run ended, in one word


class NothingLeftError(GuestError):
    """Every CPU of the guest waits for something that never comes."""

    exit_code = 6
    reason = "nothing-left"
