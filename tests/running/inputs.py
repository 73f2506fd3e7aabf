"""The files that programs work on, the same in each run: text, numbers, noise, a picture, sound, a program."""

import os
import random
from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent / "scripts"
_TIME: Final = 10**9  # when they were made, in seconds of UNIX
_WORDS: Final = [
    "probe",
    "site",
    "patch",
    "trampoline",
    "dissect",
    "emulate",
    "frame",
    "clause",
    "predicate",
    "tuple",
    "of",
    "the",
    "and",
    "in",
    "a",
    "to",
    "is",
]


def write_inputs(folder: Path) -> None:
    """All of them, and the scripts."""
    chance = random.Random(23)
    lines = (" ".join(chance.choices(_WORDS, k=chance.randint(1, 14))) for _ in range(6000))
    (folder / "text").write_text("\n".join(f"{line} {chance.randint(0, 10**6)}" for line in lines) + "\n")
    (folder / "numbers").write_text("\n".join(str(chance.randint(-(10**9), 10**9)) for _ in range(5000)) + "\n")
    (folder / "noise").write_bytes(chance.randbytes(300_001))
    (folder / "picture.ppm").write_bytes(b"P6 320 240 255\n" + bytes(_picture(320, 240, 0)))
    frames = (b"FRAME\n" + _planes(192, 144, number) for number in range(12))
    (folder / "film.y4m").write_bytes(b"YUV4MPEG2 W192 H144 F25:1 Ip A1:1 C420jpeg\n" + b"".join(frames))
    (folder / "sound.wav").write_bytes(_wave(44_100))
    for script in sorted(SCRIPTS.iterdir()):
        if script.is_file():
            (folder / script.name).write_bytes(script.read_bytes())
    for path in folder.iterdir():  # which archives keep
        os.utime(path, (_TIME, _TIME))


def _picture(width: int, height: int, number: int) -> bytearray:
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            pixels += bytes(((x + 3 * number) & 255, (x * y >> 4) & 255, (x ^ y) & 255))
    return pixels


def _planes(width: int, height: int, number: int) -> bytes:
    bright = bytes((x * 2 + y + 5 * number + (x * y >> 5)) & 255 for y in range(height) for x in range(width))
    red = bytes((x + number * 3) & 255 for _ in range(height // 2) for x in range(width // 2))
    blue = bytes((y * 2 - number) & 255 for y in range(height // 2) for _ in range(width // 2))
    return bright + red + blue


def _wave(samples: int) -> bytes:
    data = bytearray()
    for number in range(samples):
        value = (number * number // 97 % 20_000) - 10_000 + (number % 100) * 50
        data += value.to_bytes(2, "little", signed=True)
    size = len(data)
    head = b"RIFF" + (36 + size).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    form = b"\x01\0\x01\0" + (44_100).to_bytes(4, "little") + (88_200).to_bytes(4, "little") + b"\x02\0\x10\0"
    return head + form + b"data" + size.to_bytes(4, "little") + bytes(data)
