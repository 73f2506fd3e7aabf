"""A request -> what its programs are compiled against: an image, or nothing but the machine's time."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from kinst.runtime.tracing.no_image import NoImage
from kinst.runtime.tracing.programs.program_text import ProgramText
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.running import Traced
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import ImageTypes

if TYPE_CHECKING:
    from kinst.rewriter.rewriting import Opened
    from kinst.runtime.tracing.guests.built import Covered
    from kinst.runtime.tracing.guests.guest import Guest
    from kinst.runtime.tracing.programs.inline_clauses import InlineClauses
    from kinst.runtime.typed.image_objects import Objects


class Subject(Protocol):
    """What is known before there is a guest, and what leads to one."""

    @property
    def programs(self) -> Sequence[ProgramText]:
        """What to run: the user's programs, or what the image was patched for."""
        ...

    @property
    def arch(self) -> ArchFacts:
        """The machine whose registers programs name."""
        ...

    @property
    def types(self) -> ImageTypes:
        """The types that programs name."""
        ...

    @property
    def constants(self) -> Mapping[str, int]:
        """NULL, SIGINT and the like: some depend on the image's operating system."""
        ...

    @property
    def providers(self) -> Sequence[str]:
        """Providers that the image may have, even if they have no probes in this run."""
        ...

    @property
    def guest(self) -> "Guest | None":
        """The image in its machine, once it is loaded; None: it is not in a machine of ours."""
        ...

    @property
    def covered(self) -> "Covered | None":
        """What counts what runs of the image, and the image; None: nothing does."""
        ...

    @property
    def inlines(self) -> "InlineClauses | None":
        """What descriptions of inlined copies mean; None: there is no image, or it is not loaded yet."""
        ...

    @property
    def refusals(self) -> Sequence[str]:
        """What was described but cannot be probed: a line each."""
        ...

    def objects(self) -> "Objects":
        """The typed values of the image, once it is loaded. Raises UsageError: there is no image."""
        ...

    def load(self, descriptions: Sequence[str], warn: Callable[[str], None]) -> Traced:
        """Load the machine, with probes for what programs and actions describe. Raises KinstError."""
        ...

    def reason(self, description: str) -> str:
        """Why a description (four fields or an identifier) patched nothing; empty if there is no known reason."""
        ...


def subject_of(request: Request, opened: "Opened | None") -> Subject:
    """The subject of a request. Only this imports the libraries that read, patch and run an image, which take a second
    to load. `opened` is the image if it was already analysed.

    Raises:
        KinstError: the image cannot be read.
    """
    if request.image is None:
        return NoImage(request)
    from kinst.runtime.tracing.image_subject import ImageSubject

    return ImageSubject(request, opened)
