"""FreeBSD's static probes: `struct sdt_probe` and what belongs to it, found through linker sets of pointers.

Fields by offset; the first word of a probe is the size of the structure, by which its form is known:

    struct sdt_probe        88 bytes (to FreeBSD 14): 8 provider, 48 module, 56 function, 64 name, 72 id
                           104 bytes (FreeBSD 15):    8 provider, 64 module, 72 function, 80 name, 88 id
    struct sdt_provider     0 name
    struct sdt_argtype      0 index, 8 type, 16 translated type, 40 probe
    struct sdt_tracepoint   0 probe, 8 address of a nop, 16 where a jump in its place leads

A kernel of the first form asks `id` of a probe and calls the function that `sdt_probe_func` points to, which is
`sdt_probe_stub`; one of the second form calls `sdt_probe` after the nops. The id comes first, then the arguments.
"""

from collections.abc import Iterator
from typing import Final

from kinst.targets.elf.header import FileKind
from kinst.targets.errors import ImageError
from kinst.targets.image import Image
from kinst.targets.kernels.kernel_tables import text_at
from kinst.targets.static_probes import is_name
from kinst.targets.values import dataclass

_PROBES: Final = "set_sdt_probes_set"
_ARGUMENTS: Final = "set_sdt_argtypes_set"
_TRACEPOINTS: Final = "set_sdt_tracepoint_set"
_MODULE_OFFSET: Final = {88: 48, 104: 64}  # by the size of the structure; function, name and id follow
_PROVIDER, _ARGTYPE_TYPE, _ARGTYPE_TRANSLATED, _ARGTYPE_PROBE = 8, 8, 16, 40
_MOST_ARGUMENTS: Final = 16


@dataclass(frozen=True, slots=True)
class SdtRecord:
    """One probe of the sets. Texts are unchanged; addresses are link addresses."""

    address: int
    provider: str
    module: str
    function: str
    name: str
    id_word: int
    types: tuple[str, ...]
    branches: tuple[tuple[int, int], ...]  # nops, and where a jump in the place of each leads
    has_tracepoints: bool  # the second form


def sdt_records(image: Image) -> tuple[SdtRecord, ...]:
    """All probes of the linker sets, in their order. What is damaged, or not linked yet, is left out."""
    if image.kind is FileKind.REL or image.section(_PROBES) is None:
        return ()
    types = _argument_types(image)
    branches: dict[int, list[tuple[int, int]]] = {}
    for tracepoint in _pointers(image, _TRACEPOINTS):
        probe, nop, target = (_word(image, tracepoint + offset) for offset in (0, 8, 16))
        if probe and nop and target:
            branches.setdefault(probe, []).append((nop, target))
    found = (_record(image, address, types, branches) for address in _pointers(image, _PROBES))
    return tuple(record for record in found if record is not None)


def _pointers(image: Image, name: str) -> Iterator[int]:
    """The pointers in a section that is a linker set."""
    section = image.section(name)
    if section is not None:
        data = image.data[section.offset : section.offset + section.size]
        # Without duplicates: merged linker sets may name one twice.
        yield from dict.fromkeys(data[: len(data) & ~7].view("<u8").tolist())


def _word(image: Image, address: int) -> int:
    """A pointer; 0 where the file has none."""
    try:
        return int.from_bytes(image.read(address, 8), "little")
    except ImageError:
        return 0


def _record(
    image: Image, address: int, types: dict[int, dict[int, str]], branches: dict[int, list[tuple[int, int]]]
) -> SdtRecord | None:
    # The first field is the size of the structure, so another layout is recognised, and not misread.
    module_offset = _MODULE_OFFSET.get(_word(image, address) & 0xFFFF_FFFF)
    provider = text_at(image, _word(image, _word(image, address + _PROVIDER)))
    if module_offset is None or provider is None:
        return None
    module, function, name = (text_at(image, _word(image, address + module_offset + at)) or "" for at in (0, 8, 16))
    if not is_name(provider) or not is_name(name) or not all(is_name(text) for text in (module, function) if text):
        return None
    own = types.get(address, {})
    return SdtRecord(
        address=address,
        provider=provider,
        module=module,
        function=function,
        name=name,
        id_word=address + module_offset + 24,
        types=tuple(own.get(index, "uintptr_t") for index in range(max(own, default=-1) + 1)),
        branches=tuple(branches.get(address, ())),
        has_tracepoints=module_offset == _MODULE_OFFSET[104],
    )


def _argument_types(image: Image) -> dict[int, dict[int, str]]:
    """Types by probe and index; a translated type wins."""
    found: dict[int, dict[int, str]] = {}
    for address in _pointers(image, _ARGUMENTS):
        index, probe = _word(image, address) & 0xFFFF_FFFF, _word(image, address + _ARGTYPE_PROBE)
        translated = text_at(image, _word(image, address + _ARGTYPE_TRANSLATED))
        text = translated or text_at(image, _word(image, address + _ARGTYPE_TYPE))
        if text and probe and index < _MOST_ARGUMENTS:
            found.setdefault(probe, {})[index] = text
    return found
