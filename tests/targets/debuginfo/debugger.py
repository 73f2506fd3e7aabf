"""What gdb says of types: the reference. Runs inside gdb too, which has a Python of its own and none of our packages.

python debugger.py: in gdb, with the path of a request in KINST_REQUEST; it prints what `Answer` holds, as JSON.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def _aggregate(gdb: Any, kind: Any) -> dict[str, Any]:
    members = [
        [field.name or "", field.bitpos, field.bitsize, field.type.sizeof]
        for field in kind.fields()
        if hasattr(field, "bitpos")
    ]
    return {"size": kind.sizeof, "members": members}


def _enumeration(gdb: Any, kind: Any) -> dict[str, Any]:
    return {"size": kind.sizeof, "values": [[field.name, field.enumval] for field in kind.fields()]}


def _typedef(gdb: Any, kind: Any) -> dict[str, Any]:
    plain = kind.strip_typedefs()
    has_size = plain.code not in (gdb.TYPE_CODE_FUNC, gdb.TYPE_CODE_VOID)  # as in GNU C they have size 1 for gdb
    found = {"size": kind.sizeof if has_size else 0, "parameters": None}
    if plain.code == gdb.TYPE_CODE_PTR and plain.target().strip_typedefs().code == gdb.TYPE_CODE_FUNC:
        found["parameters"] = len(plain.target().strip_typedefs().fields())
    return found


def _answer(gdb: Any, name: str) -> dict[str, Any] | None:
    try:
        kind = gdb.lookup_type(name)
    except gdb.error:
        return None
    if name.startswith("enum "):
        return _enumeration(gdb, kind)
    return _aggregate(gdb, kind) if name.startswith(("struct ", "union ")) else _typedef(gdb, kind)


def main() -> None:
    """Answers in gdb."""
    gdb = import_module("gdb")  # only there inside of gdb

    names = json.loads(Path(os.environ["KINST_REQUEST"]).read_text())
    sys.stdout.write(json.dumps({name: _answer(gdb, name) for name in names}))


if __name__ == "__main__":
    main()
