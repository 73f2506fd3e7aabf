"""What an object is made of comes with its constructor, and only its own file changes it afterwards.

An attribute that is assigned from another file is wiring in order of luck: who uses the object before that finds
nothing, or what was there before. Whoever needs to change something calls a method that says what happens.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.test_house import CODE, ROOT

# File and attributes that it may assign, for a reason.
_A_HIT = "one object is used for all hits, which are replayed in half a microsecond each: a call would be a tenth of it"
_PROTOBUF = "messages of protobuf are filled so; their fields have the names of attributes of ours"
_THEIRS = "an object of another library, which is told so"
_THREAD = "a thread's own"
_EXCUSED = {
    ("runtime/hits/recorded.py", "cpu"): _A_HIT,
    ("runtime/hits/recorded.py", "enabling"): _A_HIT,
    ("runtime/hits/recorded.py", "key"): _A_HIT,
    ("runtime/hits/recorded.py", "time"): _A_HIT,
    ("runtime/consumer/perfetto/trace.py", "name"): _PROTOBUF,
    ("runtime/consumer/perfetto/trace.py", "pid"): _PROTOBUF,
    ("runtime/consumer/perfetto/trace.py", "tid"): _PROTOBUF,
    ("runtime/consumer/perfetto/trace.py", "timestamp"): _PROTOBUF,
    ("runtime/consumer/perfetto/trace.py", "type"): _PROTOBUF,
    ("runtime/input/expression.py", "encoding"): _THEIRS,
    ("rewriter/assemble.py", "syntax"): _THEIRS,
    ("rewriter/disassemble.py", "syntax"): _THEIRS,
    ("runtime/attached/guest.py", "restore"): _THEIRS,
    ("runtime/attached/guest.py", "save"): _THEIRS,
    ("runtime/engine/attached_engine.py", "_internal_exception"): _THEIRS,
    ("runtime/batch/cluster_worker.py", "process"): _THREAD,
}


def assigned(nodes: Iterable[ast.AST]) -> Iterator[ast.Attribute]:
    """The attributes that are assigned, in any way, of anything but self and cls."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not _is_self(node.value):
            yield node


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def attributes(owner: ast.ClassDef) -> Iterator[str]:
    """What instances of a class have: what its body and its methods assign."""
    for node in owner.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
    for inner in ast.walk(owner):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and _is_self(inner.value):
            yield inner.attr


def outside(sources: dict[str, str]) -> set[tuple[str, str]]:
    """Of files by name: each file and attribute that it assigns, where a class of another file has the attribute and
    none of its own, and the owner is no structure of ctypes, whose fields are memory that is shared with other code."""
    trees = {name: [*ast.walk(ast.parse(text))] for name, text in sources.items()}
    homes: dict[str, set[str]] = defaultdict(set)
    words = {"value"}
    for name, nodes in trees.items():
        for owner in (node for node in nodes if isinstance(node, ast.ClassDef)):
            is_shared = any(ast.unparse(base).endswith("Structure") for base in owner.bases)
            for attribute in attributes(owner):
                words.update([attribute] if is_shared else [])
                homes[attribute].update([] if is_shared else [name])
    return {
        (name, target.attr)
        for name, nodes in trees.items()
        for target in assigned(nodes)
        if homes[target.attr] and name not in homes[target.attr] and not _is_shared(target, words)
    }


def _is_shared(target: ast.Attribute, words: set[str]) -> bool:
    """Whether it is a word of a ctypes structure, which is called a state where it is used."""
    whose = ast.unparse(target.value)
    return target.attr == "value" or (target.attr in words and whose.split(".")[-1] in ("_state", "state", "compared"))


def test_attributes_are_assigned_where_their_class_is() -> None:
    sources = {
        str(path.relative_to(ROOT)): path.read_text() for tree in CODE for path in sorted((ROOT / tree).rglob("*.py"))
    }
    assert outside(sources) == set(_EXCUSED)


def test_an_assignment_from_elsewhere_is_found() -> None:
    """In each of its forms: alone, with an operator, with others, by a loop and by `with`."""
    machine = "class Machine:\n    def __init__(self): self.hook = self.count = self.last = self.file = None\n"
    user = (
        "machine.hook = 1\nmachine.count += 1\nother, (a.machine.last, *rest) = x\n"
        "for machine.hook in hooks: pass\nwith open() as machine.file: pass\nmachine.unknown = self.hook\n"
    )
    found = outside({"machine.py": machine, "user.py": user})
    assert found == {("user.py", name) for name in ("hook", "count", "last", "file")}
    assert outside({"machine.py": machine + user}) == set()
