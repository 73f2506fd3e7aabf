"""Run by gdb: step a program, and at each instruction of a trampoline compare its callers with those at the site.

What gdb knows of the callers at the site is the original's call frame information, which the file still has.
FIRST, END: link addresses of the trampolines; STEPS: how many instructions.
"""

import os
from typing import Any

import gdb  # type: ignore[import-untyped]


def callers(frame: Any) -> tuple[int | None, list[int]]:
    """The addresses of the callers, and the stack pointer of the first of them: the CFA."""
    found, older = list[int](), frame.older()
    first = None if older is None else int(older.read_register("sp"))
    while older is not None and len(found) < 64:
        if older.type() not in (gdb.TAILCALL_FRAME, gdb.INLINE_FRAME):  # guessed from debug information
            found.append(older.pc())
        older = older.older()
    return first, found


def main() -> None:
    """Print how many instructions of trampolines were compared, and each that differs."""
    first, end, steps = (int(os.environ[name], 0) for name in ("FIRST", "END", "STEPS"))
    bias = int(gdb.parse_and_eval("(long)&main")) - int(os.environ["MAIN"], 0)
    before: tuple[int | None, list[int]] | None = None
    checked, places, wrong = 0, set[int](), 0
    for _ in range(steps):
        frame = gdb.newest_frame()
        pc = frame.pc() - bias
        if first <= pc < end:
            checked += 1
            places.add(pc)
            if before is not None and callers(frame) != before:
                wrong += 1
                print(f"WRONG {pc:#x}: {callers(frame)}, not {before}")
        else:
            before = callers(frame)
        gdb.execute("stepi", to_string=True)
    print(f"CHECKED {checked} {len(places)} {wrong}")


main()
