"""A patched file -> the bytes of its trampolines."""

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.targets.errors import MachineError
from kinst.targets.manifest.packed import Manifest


def trampoline_code(patched_image: Loaded, manifest: Manifest) -> bytes:
    """The bytes of the trampoline segment in a patched file. Raises MachineError: the file has not all of them."""
    address, size = manifest.trampolines
    if not size:
        return b""
    code = patched_image.image.read(address, size)
    if len(code) != size:
        raise MachineError(f"{patched_image.image.path}: the trampolines at {address:#x} are not in the file")
    return code
