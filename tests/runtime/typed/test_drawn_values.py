"""Values of drawn types are printed as gdb prints them, and computed with as gdb computes."""

import random
import shutil
from pathlib import Path

import pytest

from kinst.runtime import KinstError, Object, cast, open_image, sizeof
from kinst.targets.arch.registry import NAMES
from tests.gated import draws
from tests.runtime.typed.drawing import Drawn, linked, printed

pytestmark = [
    pytest.mark.turns,
    pytest.mark.skipif(shutil.which("gdb-multiarch") is None, reason="no gdb-multiarch"),
]
OPTIONS = (("-gdwarf-5",), ("-gdwarf-4", "-O2"), ("-gdwarf-2", "-gstrict-dwarf"))
INTEGERS = (
    *("char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long"),
    *("unsigned long", "long long", "unsigned long long"),
)
SIGNS = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=")


@pytest.mark.parametrize("machine", NAMES)
@pytest.mark.parametrize("seeds", draws(1, 40))
def test_gdb_prints_the_same(machine: str, seeds: int, tmp_path: Path) -> None:
    for seed in range(seeds):
        drawn = Drawn(seed, 12 if seeds > 1 else 5, has_quad=machine != "amd64")
        path = linked(tmp_path, machine, drawn.source, *OPTIONS[seed % len(OPTIONS)])
        expected = printed(path, drawn.names)
        with open_image(path) as image:
            assert [str(image[name[:-2]].v) for name in drawn.names] == expected, seed
            # A copy of all bytes shows the same; but where a member has no address, as a flexible array needs it.
            assert [str(image[name[:-2]].v.read_()) for name in drawn.names] == expected, seed


def computed(sign: str, left: Object, right: Object) -> Object | bool:
    found: Object | bool = eval(f"left {sign} right", {"left": left, "right": right})
    return found


@pytest.mark.parametrize("machine", NAMES)
@pytest.mark.parametrize("count", draws(30, 2000))
def test_gdb_computes_the_same(machine: str, count: int, tmp_path: Path) -> None:
    choose = random.Random(count)
    values = [choose.choice((0, 1, -1, choose.randrange(-9, 9), choose.getrandbits(64))) for _ in range(64)]
    kinds = [choose.choice(INTEGERS) for _ in values]
    lines = [
        f"{kind} x{at} = {value & (1 << 64) - 1}ull;"
        for at, (kind, value) in enumerate(zip(kinds, values, strict=True))
    ]
    path = linked(tmp_path, machine, "\n".join(lines) + "\nvoid start(void) { for (;;); }")
    with open_image(path) as image:
        pairs = list[tuple[str, str, str]]()
        while len(pairs) < count:
            sign, left, right = choose.choice(SIGNS), choose.randrange(64), choose.randrange(64)
            try:
                found = computed(sign, image[f"x{left}"], image[f"x{right}"])
            except KinstError:  # a division by zero, or a shift by too many bits
                continue
            shown = (str(int(found)), "4") if isinstance(found, bool) else (str(found), str(sizeof(found)))
            pairs.append((f"x{left} {sign} x{right}", *shown))
        expressions = [text for one, _, _ in pairs for text in (one, f"sizeof({one})")]
        told = printed(path, expressions)
        assert list(zip([one for one, _, _ in pairs], told[::2], told[1::2], strict=True)) == pairs
        casts = [
            (f"({kind}) x{at}", str(cast(kind, image[f"x{at}"])))
            for at in range(count // 2)
            for kind in INTEGERS[at % 4 :: 4]
        ]
        assert printed(path, [text for text, _ in casts]) == [text for _, text in casts]
