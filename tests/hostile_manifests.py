"""Manifests of a patched image as somebody who means harm would make them: one value changed, all digests made anew."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinst.targets.image import open_image
from kinst.targets.manifest.packed import SECTION, unpack_manifest
from kinst.targets.manifest.seal import opened, sealed
from kinst.targets.manifest.tables import packed_table
from tests.writers.manifests import with_manifest

HOSTILE_VALUES: tuple[Any, ...] = (
    -1, 0, 1, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1, 1 << 64, 1 << 70, 10**300, 1.5, float("nan"), float("inf"),
    None, True, "", "\x1b[31mred\x1b[0m", "x" * 70_000, "a\0b", "a\nb", "\ud800", "\u202e", "BEGIN{system(1)}",
    [], {}, [[]], {"a": 1},
)  # fmt: skip
_TABLES = ("sites", "probes", "enablings", "functions", "names", "numbers", "symbols", "strings")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A whole manifest, and what was done to it."""

    data: bytes
    what: str


class Mutants:
    """Of the manifest of one patched image."""

    def __init__(self, patched: Path) -> None:
        image = open_image(patched)
        section = image.section(SECTION)
        assert section is not None
        self._patched = patched
        self.unchanged = patched.read_bytes()
        self._offset = section.offset
        self.original = self.unchanged[section.offset : section.offset + section.size]
        head, body = opened(memoryview(self.original))
        self._head, self._body = bytes(head), bytes(body)
        manifest = unpack_manifest(self.original)
        tables = {name: getattr(manifest, name) for name in _TABLES}
        self._tables = {
            name: np.frombuffer(table, np.uint8) if isinstance(table, bytes) else table
            for name, table in tables.items()
            if len(table)
        }

    def file(self, mutant: Mutant) -> bytes:
        """The patched file with another manifest, which lies where it lay or at the end."""
        return with_manifest(self._patched, mutant.data)

    def flipped(self, offset: int) -> bytes:
        """The patched file with one bit of its manifest changed, and no digest."""
        data = bytearray(self.unchanged)
        data[self._offset + offset] ^= 4
        return bytes(data)

    def made(self, seed: int, count: int) -> Iterator[Mutant]:
        """`count` mutants, always the same ones of a seed; none is the original."""
        source = random.Random(seed)
        while count:
            kind = source.random()
            mutant = self._of_head(source) if kind < 0.45 else self._of_tables(source)
            mutant = self._of_body(source) if kind > 0.9 else mutant
            if mutant.data != self.original:
                count -= 1
                yield mutant

    def _of_head(self, source: random.Random) -> Mutant:
        head = json.loads(self._head)
        field = source.choice(sorted(head))
        path = source.choice([path for path in _paths(head) if path[0] == field])
        node = head
        for step in path[:-1]:
            node = node[step]
        value = source.choice(HOSTILE_VALUES)
        if source.random() < 0.1:
            del node[path[-1]]
        else:
            node[path[-1]] = value
        text = json.dumps(head, separators=(",", ":"), sort_keys=True)
        return self._sealed(text, self._body, f"{path} {repr(value)[:40]}")

    def _of_tables(self, source: random.Random) -> Mutant:
        """One value of a table, as if the tool had packed it."""
        name = source.choice(list(self._tables))
        table = self._tables[name].copy()
        if table.dtype.names is None or source.random() < 0.4:
            data = table.view(np.uint8)
            offset = source.randrange(len(data))
            data[offset] = source.choice((source.randrange(256), 0x1B, 0, 0xFF, int(data[offset]) ^ 1))
            what = f"{name}: byte {offset} {data[offset]}"
        else:
            column, row = source.choice(table.dtype.names), source.randrange(len(table))
            value = _near(source, table[column][row].tobytes())
            values = table[column]
            values[row] = np.frombuffer(value, values.dtype)[0]
            what = f"{name}.{column}[{row}] {value.hex()}"
        packed = b"".join(packed_table(table if one == name else self._tables[one]) for one in self._tables)
        return self._sealed(self._head.decode(), packed, what)

    def _of_body(self, source: random.Random) -> Mutant:
        """A byte of what is compressed: of a size, of a frame's header, or of what is in it."""
        body, at = bytearray(self._body), 0
        places = []
        for table in self._tables.values():
            places += [at + source.randrange(8), at + 8 + source.randrange(12), at + source.randrange(8, 200)]
            at += len(packed_table(table))
        offset = min(source.choice(places), len(body) - 1)
        body[offset] = source.choice((source.randrange(256), 0, 0xFF, body[offset] ^ 1, body[offset] ^ 0x40))
        return self._sealed(self._head.decode(), body, f"compressed: byte {offset} {body[offset]}")

    def _sealed(self, head: str, body: bytes | bytearray, what: str) -> Mutant:
        text = head.rstrip(" ").encode()
        text += b" " * (-len(text) % 8)
        return Mutant(b"".join(sealed(memoryview(text), memoryview(bytes(body)))), what)


def _near(source: random.Random, before: bytes) -> bytes:
    """Another number of as many bytes, which is near or at an end."""
    bits = 8 * len(before)
    near = int.from_bytes(before, "little") + source.randrange(-9, 9)
    values: tuple[int, ...] = (0, 1, 2, 3, 2**bits - 1, 2 ** (bits - 1), source.randrange(2**bits), near % 2**bits)
    return source.choice(values).to_bytes(len(before), "little")


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    steps = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for step in steps:
        yield from _paths(node[step], (*path, step))
