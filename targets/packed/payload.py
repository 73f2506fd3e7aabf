"""An image within a file of a boot loader, which says what it is and where it is loaded -> what is in it."""

import gzip
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import ARCHES
from kinst.targets.compression import compression_of, decompressed
from kinst.targets.errors import ImageError
from kinst.targets.packed.boot_image import LARGEST
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.raw import at_address
from kinst.targets.packed.raw_kernel import facts_of
from kinst.targets.packed.reading import Reading
from kinst.targets.values import dataclass

_ELF: Final = b"\x7fELF"
_MACHINES: Final = {one.in_files.u_boot: one.name for one in ARCHES}


@dataclass(frozen=True, slots=True)
class Payload:
    """One of the images in a file."""

    name: str
    kind: str  # "kernel", "firmware", "ramdisk", ... as the file has it
    machine: str  # as the file has it
    compression: str  # "none", "gzip", ...; "": it is not said
    load: int | None
    entry: int | None
    data: NDArray[np.uint8]

    @property
    def ours(self) -> str:
        """The architecture by our name; "": it is none of ours."""
        return _MACHINES.get(self.machine, "")

    def __str__(self) -> str:
        """For a list."""
        load = () if self.load is None else (f"{self.load:#x}",)
        return f"{self.name} ({', '.join(filter(None, (self.kind, self.machine, *load)))})"


def chosen(file: str, payloads: list[Payload], reading: Reading, defaults: list[str]) -> Payload:
    """The payload that the user asks for, or the only one of our machines, or else the first of `defaults` that is.

    Raises:
        ImageError: there is none, or there are several; it lists them.
    """
    found = [one for one in payloads if one.name == reading.payload]
    if reading.payload and len(found) != 1:
        raise ImageError(f"{file}: --payload {reading.payload}: {_listed(payloads)}")
    ours = [one for one in payloads if one.ours and len(one.data)]
    named = [one for name in defaults for one in ours if one.name == name]
    found = found or (ours if len(ours) == 1 else named[:1])
    if not found:
        raise ImageError(f"{file}: name what is meant with --payload: {_listed(ours or payloads)}")
    return found[0]


def _listed(payloads: list[Payload]) -> str:
    if not payloads:
        return "there is nothing in it"
    return "there are " + ", ".join(map(str, payloads)) if len(payloads) > 1 else f"there is {payloads[0]}"


def layer_of(file: str, one: Payload, reading: Reading, store: Callable[[bytes], bytes]) -> Layer:
    """A payload as the content of its file; `store` makes the file with other bytes of the payload.

    Raises:
        ImageError: it is damaged, for another machine, or does not say where it is loaded.
    """
    head = one.data[:64].tobytes()
    packed = one.compression not in ("none", "") or compression_of(head[:16]) is not None
    data, kind = one.data, f"{file} ({one.name})"
    put = store
    if packed:
        data, put = _unpacked(one, file), _packing(one, file, store)
        kind += f", {compression_of(head[:16])}"
    head = data[:64].tobytes()
    if head.startswith(_ELF) or facts_of(head) is not None:
        return Layer(kind, data, lambda new: put(new.tobytes()), has_payloads=True)
    machine = reading.machine or one.ours
    if not machine:
        raise ImageError(f"{file}: {one}: is not for one of our machines, nor an ELF file")
    if one.load is None:
        raise ImageError(f"{file}: {one}: does not say where it is loaded: take it out, and use --raw")
    entry = reading.entry if reading.entry is not None else one.entry
    made = at_address(data, machine, one.load, entry, kind)
    flat = made.rebuild
    assert flat is not None, "memory is written again"
    return Layer(kind, made.inner, lambda new: put(flat(new)), has_headers=False, is_flat=True, has_payloads=True)


def _unpacked(one: Payload, file: str) -> NDArray[np.uint8]:
    try:
        return np.frombuffer(decompressed(one.data.tobytes(), LARGEST), np.uint8)
    except ImageError as error:
        raise ImageError(f"{file}: {one.name}: {error}") from None


def _packing(one: Payload, file: str, store: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """gzip is what everybody's boot loader has, and what we make again, the same for the same content."""
    name = compression_of(one.data[:16].tobytes())

    def put(content: bytes) -> bytes:
        if name != "gzip":
            raise ImageError(
                f"{file}: {one.name} is compressed ({name}), and only gzip is written: patch what is in it"
            )
        return store(gzip.compress(content, mtime=0))

    return put
