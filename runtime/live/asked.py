"""A request -> whether QEMU can do all that it asks for. What it cannot is refused before anything is started."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.tracing.request import Request
from kinst.targets.errors import UsageError

_OURS: Final = "is for our own machine"
_OF_TASKS: Final = f"{_OURS}: under QEMU, a predicate of pid or execname chooses processes"
# Options of kinst-run, which Python's and kinst-batch's names follow; whether one is given; why it cannot be.
REFUSED: Final[tuple[tuple[str, Callable[[Request], bool], str], ...]] = (
    ("--call", lambda request: request.call is not None, f"{_OURS}: QEMU boots the image"),
    ("--method", lambda request: request.method is not None, f"{_OURS}: under QEMU, probes are jumps"),
    (
        "--clock icount",
        lambda request: request.configuration.clock is not ClockKind.HOST,
        f"{_OURS}: QEMU's time is the host's",
    ),
    (
        "--kaslr-seed",
        lambda request: request.configuration.kaslr_seed is not None,
        f"{_OURS}: under QEMU Linux draws its own on arm64, and is where it is linked elsewhere",
    ),
    (
        "--rng-seed",
        lambda request: request.configuration.rng_seed is not None,
        f"{_OURS}: for random numbers that follow from nothing add -device virtio-rng-pci to the command of --on",
    ),
    (
        "--virtio-console",
        lambda request: request.configuration.has_virtio_console,
        f"{_OURS}: for one that is written to a file add -device virtio-serial -chardev file,id=hvc0,path=FILE "
        "-device virtconsole,chardev=hvc0 to the command of --on",
    ),
    (
        "--user",
        lambda request: bool(request.users),
        f"{_OURS}: frames of the guest's programs, which it would name, are not recorded under QEMU",
    ),
    ("-p", lambda request: request.target is not None and request.target.pid is not None, _OF_TASKS),
    ("--exec", lambda request: request.target is not None and request.target.pid is None, _OF_TASKS),
    (
        "--stage",
        lambda request: any(one.loaded is None for one in request.beside),
        f"{_OURS}: under QEMU only IMAGE has names and probes",
    ),
    (
        "--coverage",
        lambda request: request.coverage is not None and bool(request.programs or request.actions),
        "under --on it is of a run without programs: leave them out, or leave --on out",
    ),
    (
        "--coverage",
        lambda request: request.coverage is not None and request.records_hits,
        f"with --report it {_OURS}: under QEMU give --coverage FILE.html",
    ),
    ("--learn", lambda request: request.learn is not None, f"{_OURS}: under QEMU, registers are QEMU's"),
    ("--gdb", lambda request: request.gdb is not None, f"{_OURS}: add -gdb tcp::PORT -S to the command of --on"),
    ("--log", lambda request: request.log is not None, f"{_OURS}: QEMU itself has -d guest_errors,unimp,int"),
)


def check_asked(request: Request) -> None:
    """Raise UsageError for the first option that is given and that QEMU cannot follow."""
    if request.image is None:
        raise UsageError("--on: give the IMAGE that it runs")
    for option, is_given, why in REFUSED:
        if is_given(request):
            raise UsageError(f"{option}: {why}")
