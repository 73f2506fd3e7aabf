"""What a user says of an image file that does not say it itself: `--raw`, `--entry` and `--payload` -> `Reading`."""

import re
from dataclasses import asdict
from typing import Any, Final

from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_NUMBER: Final = r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}"
_RAW: Final = re.compile(rf"([A-Za-z0-9_]+)(?:@({_NUMBER}))?")
_LAST: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read. Each field is empty where the file itself says it."""

    machine: str = ""  # name of the architecture
    address: int | None = None  # where a file is loaded that has no addresses: it is nothing but memory
    entry: int | None = None  # where it starts; else at its first byte, or where its records say
    payload: str = ""  # which of the images in it

    def values(self) -> dict[str, Any]:
        """The fields, for a manifest."""
        return asdict(self)

    def __str__(self) -> str:
        """The options that say it."""
        raw = f"--raw {self.machine}" + ("" if self.address is None else f"@{self.address:#x}")
        entry = "" if self.entry is None else f"--entry {self.entry:#x}"
        payload = f"--payload {self.payload}" if self.payload else ""
        return " ".join(filter(None, (raw if self.machine else "", entry, payload)))


AS_IT_SAYS: Final = Reading()


def reading_of(raw: str | None, entry: str | None, payload: str | None) -> Reading:
    """The values of the three options.

    Raises:
        UsageError: a machine or an address that is none.
    """
    machine, address = ("", None) if raw is None else _raw(raw)
    return Reading(machine, address, None if entry is None else _address("--entry", entry), payload or "")


def read_reading(values: dict[str, Any]) -> Reading:
    """What `Reading.values` gave, from a file that anybody may have written.

    Raises:
        ValueError: it is none.
    """
    found = Reading(**values)
    numbers = (found.address, found.entry)
    if not all(one is None or (type(one) is int and 0 <= one <= _LAST) for one in numbers):
        raise ValueError("an address that is none")
    if found.machine not in ("", *NAMES) or not isinstance(found.payload, str):
        raise ValueError("no way to read a file")
    return found


def _raw(text: str) -> tuple[str, int | None]:
    found = _RAW.fullmatch(text)
    if found is None or found[1] not in NAMES:
        raise UsageError(
            f"--raw {text}: MACHINE@ADDRESS, for example arm64@0x80000000; the machines are {', '.join(NAMES)}"
        )
    return found[1], None if found[2] is None else _address("--raw", found[2])


def _address(option: str, text: str) -> int:
    found = int(text, 16 if text[:2] in ("0x", "0X") else 10) if re.fullmatch(_NUMBER, text) else _LAST + 1
    if found > _LAST:
        raise UsageError(f"{option} {text}: not an address such as 0x80000000")
    return found
