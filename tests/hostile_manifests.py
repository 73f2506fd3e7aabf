"""Manifests of a patched image as somebody who means harm would make them: one value changed, all digests made anew."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinst.targets.elf.header import SECTION_HEADER
from kinst.targets.image import open_image
from kinst.targets.manifest import SECTION, unpack_manifest
from kinst.targets.manifest_seal import opened, sealed

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
        self.unchanged = patched.read_bytes()
        self._row = image.header.shoff + section.index * SECTION_HEADER.itemsize
        self._offset = section.offset
        self.original = self.unchanged[section.offset : section.offset + section.size]
        _, head, tables = opened(memoryview(self.original))
        self._head, self._tables = bytes(head), bytes(tables)
        manifest = unpack_manifest(self.original)
        self._places: list[tuple[str, np.dtype[Any], int, int]] = []
        at = 0
        for name in _TABLES:
            table = getattr(manifest, name)
            dtype = np.dtype("u1") if isinstance(table, bytes) else table.dtype
            size = len(table) * dtype.itemsize
            if size:
                self._places.append((name, dtype, at, size))
            at += size + -size % 8

    def file(self, mutant: Mutant) -> bytes:
        """The patched file with another manifest, which lies where it lay or at the end."""
        data, content = bytearray(self.unchanged), mutant.data
        offset = self._offset
        if len(content) > len(self.original):
            offset = len(data)
            data += content
        data[offset : offset + len(content)] = content
        row = np.frombuffer(data, SECTION_HEADER, 1, self._row)
        row["offset"], row["size"] = offset, len(content)
        return bytes(data)

    def flipped(self, offset: int) -> bytes:
        """The patched file with one bit of its manifest changed, and no digest."""
        data = bytearray(self.unchanged)
        data[self._offset + offset] ^= 4
        return bytes(data)

    def made(self, seed: int, count: int) -> Iterator[Mutant]:
        """`count` mutants, always the same ones of a seed; none is the original."""
        source = random.Random(seed)
        while count:
            mutant = self._of_head(source) if source.random() < 0.45 else self._of_tables(source)
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
        return self._sealed(
            json.dumps(head, separators=(",", ":"), sort_keys=True), self._tables, f"{path} {repr(value)[:40]}"
        )

    def _of_tables(self, source: random.Random) -> Mutant:
        tables = bytearray(self._tables)
        name, dtype, at, size = source.choice(self._places)
        if dtype.names is None or source.random() < 0.4:
            offset = at + source.randrange(size)
            tables[offset] = source.choice((source.randrange(256), 0x1B, 0, 0xFF, tables[offset] ^ 1))
            return self._sealed(self._head.decode(), tables, f"{name}: byte {offset - at} {tables[offset]}")
        rows = np.frombuffer(tables, dtype, size // dtype.itemsize, at)
        column, row = source.choice(dtype.names), source.randrange(len(rows))
        before = rows[column][row].tobytes()
        bits = 8 * len(before)
        near = int.from_bytes(before, "little") + source.randrange(-9, 9)
        value = source.choice((0, 1, 2, 3, 2**bits - 1, 2 ** (bits - 1), source.randrange(2**bits), near)) % 2**bits
        assert dtype.fields is not None
        start = at + row * dtype.itemsize + dtype.fields[column][1]
        tables[start : start + len(before)] = value.to_bytes(len(before), "little")
        return self._sealed(self._head.decode(), tables, f"{name}.{column}[{row}] {value:#x}")

    def _sealed(self, head: str, tables: bytes | bytearray, what: str) -> Mutant:
        text = head.rstrip(" ").encode()
        text += b" " * (-len(text) % 8)
        return Mutant(b"".join(sealed(memoryview(text), memoryview(bytes(tables)))), what)


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    steps = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for step in steps:
        yield from _paths(node[step], (*path, step))
