"""The JSON head of a manifest: its scalar fields, static probes, inlined names and patches <-> values, each bounded.

The values are untrusted: a number must be an integer in a range, and a text has no control
characters in it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from kinst.targets.arch.registry import NAMES
from kinst.targets.manifest.inlined_names import inlined_names, inlined_values
from kinst.targets.manifest.records import Manifest
from kinst.targets.manifest.values import address_of, number_of, text_of_value
from kinst.targets.method import Method
from kinst.targets.patch import Patch
from kinst.targets.probe import is_glob
from kinst.targets.standalone import Action, Standalone
from kinst.targets.static_probes import Callees, PlaceKind, StaticPlace, StaticProbe, is_name

_MOST_BYTES: Final = 1 << 48  # of a file, and identifiers of probes
_LONGEST_RECORD: Final = 1 << 12  # bytes of a tracepoint
_OF_D: Final = frozenset("{};#")  # what a D program needs to do anything, and no probe's name


def packed_head(manifest: Manifest, records: Sequence[str]) -> memoryview:
    """The head as bytes, padded with blanks; `records` name the tables that follow."""
    head: dict[str, Any] = {
        "tool_version": manifest.tool_version,
        "original_sha256": manifest.original_sha256,
        "original_size": manifest.original_size,
        "arch": manifest.arch,
        "module": manifest.module,
        "method": manifest.method,
        "options": manifest.options,
        "trampolines": manifest.trampolines,
        "restore": [(offset, data.hex()) for offset, data in manifest.restore],
        "records": {name: len(getattr(manifest, name)) for name in records},
        "next_identifier": manifest.next_identifier,
        "static_numbers": manifest.static_numbers,
        "inlined": inlined_values(manifest.inlined),
    }
    if manifest.patches:
        head["patches"] = [(one.address, one.original.hex(), one.code.hex(), one.text) for one in manifest.patches]
    if manifest.standalone is not None:
        head["standalone"] = manifest.standalone.packed()
    if manifest.static:
        head["static"] = [asdict(probe) for probe in manifest.static]
    return memoryview(_packed(head))


def _packed(head: Mapping[str, Any]) -> bytes:
    text = json.dumps(head, separators=(",", ":"), sort_keys=True).encode()
    return text + b" " * (-len(text) % 8)


def read_head(data: memoryview) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Fields of a `Manifest`, and the number of records of each table, not checked yet.

    Raises:
        ValueError, TypeError, LookupError, RecursionError: it is damaged.
    """
    head = json.loads(bytes(data))
    if not isinstance(head, dict) or not isinstance(head["records"], dict):
        raise ValueError("its head is no table of fields")
    start, size = head["trampolines"]
    fields = {
        "tool_version": text_of_value(head["tool_version"]),
        "original_sha256": _sha256(head["original_sha256"]),
        "original_size": number_of(head["original_size"], _MOST_BYTES),
        "arch": _one_of(head["arch"], NAMES),
        "module": text_of_value(head["module"]),
        "method": _one_of(head["method"], tuple(Method)),
        "options": tuple(map(_option, head["options"])),
        "trampolines": (address_of(start), number_of(size, (1 << 64) - address_of(start) + 1)),
        "restore": tuple((number_of(offset, _MOST_BYTES), bytes.fromhex(text)) for offset, text in head["restore"]),
        "static": tuple(map(_static, head.get("static", ()))),
        "inlined": inlined_names(head["inlined"]),
        "standalone": None if head.get("standalone") is None else _standalone(*head["standalone"]),
        "patches": tuple(_patch(*one) for one in head.get("patches", ())),
        "static_numbers": tuple(number_of(value, _MOST_BYTES) for value in head["static_numbers"]),
        "next_identifier": number_of(head["next_identifier"], _MOST_BYTES),
    }
    return fields, head["records"]


def _sha256(value: Any) -> str:
    text = text_of_value(value)
    if text and len(bytes.fromhex(text)) != 32:
        raise ValueError(f"{text[:40]!r} is no SHA-256")
    return text


def _one_of(value: Any, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{str(value)[:40]!r} is none of {', '.join(known)}")
    return str(value)


def _option(value: Any) -> str:
    """A probe's name, and nothing that a D program could do: `kinst-run` compiles it like the user's."""
    text = text_of_value(value)
    if not text or any(letter.isspace() for letter in text) or not _OF_D.isdisjoint(text):
        raise ValueError(f"{text[:40]!r} is no name of probes")
    return text


def _patch(address: Any, original: Any, code: Any, text: Any) -> Patch:
    return Patch(address_of(address), bytes.fromhex(original), bytes.fromhex(code), text_of_value(text))


def _standalone(
    action: Any, address: Any, load_address: Any, size: Any, capacity: Any, waits: Any, *fields: Any
) -> Standalone:
    known = Action(_one_of(action, tuple(Action)))
    bounds = address_of(address), address_of(load_address), number_of(size, _MOST_BYTES)
    found = Standalone(known, *bounds, number_of(capacity, _MOST_BYTES), waits=bool(number_of(waits, 2)))
    if known is not Action.MIX:
        return replace(found, fields=tuple(map(text_of_value, fields)))
    counters, *forms = fields
    texts = (text_of_value(form) for form in forms)
    return replace(
        found,
        forms=tuple(tuple(text.split(",")) if text else () for text in texts),
        counters=number_of(counters, _MOST_BYTES),
    )


def _static(value: Mapping[str, Any]) -> StaticProbe:
    places = tuple(map(_place, value["places"]))
    provider, module, function, name = (text_of_value(value[field]) for field in StaticProbe.__slots__[:4])
    if not places or not is_name(provider) or not is_name(name) or is_glob(function):
        raise ValueError(f"{provider[:40]}:::{name[:40]} is no static probe")
    semaphores, declared = tuple(map(address_of, value["semaphores"])), tuple(map(text_of_value, value["declared"]))
    callees = None if value.get("callees") is None else _callees(value["callees"])
    return StaticProbe(
        provider,
        module,
        function,
        name,
        places=places,
        semaphores=semaphores,
        declared=declared,
        id_word=address_of(value["id_word"]),
        switch=address_of(value["switch"]),
        callees=callees,
    )


def _callees(value: Mapping[str, Any]) -> Callees:
    functions, size = tuple(map(address_of, value["functions"])), number_of(value["size"], _LONGEST_RECORD)
    return Callees(address_of(value["record"]), size, functions, address_of(value["word"]))


def _place(value: Mapping[str, Any]) -> StaticPlace:
    operands, kind = tuple(map(text_of_value, value["operands"])), number_of(value["kind"], len(PlaceKind))
    return StaticPlace(address_of(value["address"]), operands, PlaceKind(kind), address_of(value["target"]))
