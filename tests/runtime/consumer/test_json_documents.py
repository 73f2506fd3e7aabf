"""--format json: documents of whole programs against the schema of `kinst.runtime.consumer.documents.json_output`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run

SAMPLES = Path(__file__).parents[3] / "samples"

# -- the schema: a checker for each kind of object ---------------------------------------------------------------------

Check = Callable[[Any], bool]


def is_number(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool)


def is_text(found: Any) -> bool:
    return isinstance(found, str)


def is_frame(found: Any) -> bool:
    return isinstance(found, dict) and found.keys() <= {"address", "symbol"} and found["address"].startswith("0x")


def is_value(found: Any) -> bool:
    """A number, text, pointer, struct, array, address or stack."""
    match found:
        case bool():
            return False
        case int() | float() | str():
            return True
        case list():
            return all(is_value(one) for one in found)
        case dict():
            return all(is_text(name) and is_value(one) for name, one in found.items())
        case _:
            return False


def is_bucket(found: Any) -> bool:
    return found.keys() in ({"value", "count"}, {"below", "count"}) and all(map(is_number, found.values()))


def is_row(found: Any) -> bool:
    keys = found.keys() - {"normal"}
    if keys == {"keys", "value"}:
        return all(map(is_value, found["keys"])) and is_number(found["value"])
    return keys == {"keys", "buckets"} and all(map(is_bucket, found["buckets"]))


def is_aggregation(found: Any) -> bool:
    return (
        found.keys() == {"aggregation-name", "function", "aggregation-data"}
        and found["function"] in {"count", "sum", "min", "max", "avg", "stddev", "quantize", "lquantize", "llquantize"}
        and all(map(is_row, found["aggregation-data"]))
    )


def are_aggregations(found: Any) -> bool:
    return isinstance(found, list) and all(map(is_aggregation, found))


_SHAPES: Final[tuple[dict[str, Check], ...]] = (
    {"value": is_value},
    {"message": is_text},
    {"type": is_text, "value": is_value},
    {"memory": lambda found: bytes.fromhex(found) is not None},
    {"stack-frames": lambda found: all(map(is_frame, found))},
    {"aggregations": are_aggregations},
    {"exit": is_number},
    {"clear": is_text},
    {"trunc": is_text, "argument": is_number},
    {"trunc": is_text},
    {"normalize": is_text, "argument": is_number},
    {"denormalize": is_text},
    {"setopt": is_text, "argument": is_text},
    {"setopt": is_text},
    {"setopt": is_text, "argument": is_text, "failed": is_text},
    {"system": is_text, "printed": is_text},
    {"freopen": is_text},
    {"ftruncate": lambda found: found is True},
)
OUTPUTS: Final = {frozenset(checks): checks for checks in _SHAPES}
PROBE: Final[dict[str, Check]] = {
    "cpu": is_number, "id": is_number, "provider": is_text, "module": is_text, "function": is_text, "name": is_text,
}  # fmt: skip
ERROR: Final[dict[str, Check]] = PROBE | {
    "epid": is_number, "action": is_number, "fault": is_text, "message": is_text,
    "value": lambda found: int(found, 16) >= 0,
}  # fmt: skip


def check(found: Any, checks: dict[str, Check]) -> None:
    assert found.keys() == checks.keys(), found
    wrong = [name for name, is_right in checks.items() if not is_right(found[name])]
    assert not wrong, found


def check_entry(entry: Any) -> None:
    match entry:
        case {"error": error}:
            assert entry.keys() == {"error"}
            check(error, ERROR)
        case {"drops": _}:
            assert entry.keys() <= {"drops", "kind", "cpu"}
            assert is_number(entry["drops"])
        case {"console": _}:
            check(entry, {"console": is_text})
        case _:
            for output in entry["output"]:
                check(output, OUTPUTS[frozenset(output)])
            check(entry, PROBE | {"timestamp": is_number, "output": lambda _: True})


def document(*words: str | Path) -> tuple[Any, int]:
    """The parsed document, which was checked, and the exit status."""
    arguments = ["--format", "json", "--clock", "icount", *(str(word) for word in words)]
    result = CliRunner().invoke(run, arguments, prog_name="kinst-run")
    assert isinstance(result.exception, SystemExit | None), result.exception
    found = json.loads(result.stdout)
    assert found.keys() == {"dtrace"}
    assert found["dtrace"].keys() == {"probes", "aggregations", "end"}
    for entry in found["dtrace"]["probes"]:
        check_entry(entry)
    assert are_aggregations(found["dtrace"]["aggregations"])
    return found["dtrace"], result.exit_code


def outputs(text: str, *options: str) -> list[Any]:
    """What the first firing printed, without the exit."""
    found, _ = document(*options, "-n", f"BEGIN {{ {text} exit(0); }}")
    printed: list[Any] = found["probes"][0]["output"]
    assert printed[-1] == {"exit": 0}
    return printed[:-1]


# -- programs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("trace(5);", [{"value": 5}]),
        ("trace(-1); trace((uint8_t)255);", [{"value": -1}, {"value": 255}]),
        ("x = -1; trace((uint64_t)x);", [{"value": 2**64 - 1}]),
        ('trace("text");', [{"value": "text"}]),
        ('trace("");', [{"value": ""}]),
        (r'trace("\"quoted\"\n\t\\");', [{"value": '"quoted"\n\t\\'}]),
        ('printf("%d of %s\\n", 3, "four");', [{"message": "3 of four\n"}, {"value": 3}, {"value": "four"}]),
        ('printf("nothing");', [{"message": "nothing"}]),
        ("this->p = (char *)alloca(3); this->p[1] = 0x7f; tracemem(this->p, 3);", [{"memory": "007f00"}]),
        ('@a["k", 1] = sum(7); clear(@a);', [{"clear": "@a"}]),
        ("@a = count(); trunc(@a, 5); trunc(@a);", [{"trunc": "@a", "argument": 5}, {"trunc": "@a"}]),
        ("@a = count(); normalize(@a, 2);", [{"normalize": "@a", "argument": 2}]),
        ("@a = count(); denormalize(@a);", [{"denormalize": "@a"}]),
        ('setopt("quiet");', [{"setopt": "quiet"}]),
        ('setopt("switchrate", "2s");', [{"setopt": "switchrate", "argument": "2s"}]),
    ],
)  # fmt: skip
def test_actions(text: str, wanted: list[Any]) -> None:
    assert outputs(text) == wanted


def test_destructive_actions() -> None:
    assert outputs('system("echo %d", 5); freopen("/tmp/x"); ftruncate();', "-w") == [
        {"system": "echo 5", "printed": "5\n"}, {"freopen": "/tmp/x"}, {"ftruncate": True},
    ]  # fmt: skip


def test_structs() -> None:
    program = (
        "struct s { int a; char b[4]; struct { long c; } d; }; struct s v; BEGIN { v.a = 5; v.d.c = -1; print(v); }"
    )
    found, _ = document("-n", program, "-n", "BEGIN { exit(0); }")
    (printed,) = found["probes"][0]["output"]
    assert printed["type"] == "struct s"
    assert printed["value"]["a"] == 5
    assert printed["value"]["d"] == {"c": -1}


def test_aggregations_at_the_end() -> None:
    text = '@n["x", 1] = count(); @n["y", 2] = count(); @n["y", 2] = count(); @q = quantize(100); @q = quantize(0);'
    found, _ = document("-n", f"BEGIN {{ {text} @l = lquantize(-5, 0, 10, 5); normalize(@n, 2); exit(0); }}")
    counts, powers, linear = found["aggregations"]
    assert counts["aggregation-name"] == "n"
    assert counts["function"] == "count"
    assert [(row["keys"], row["value"], row["normal"]) for row in counts["aggregation-data"]] == [
        (["x", 1], 0, 2), (["y", 2], 1, 2),
    ]  # fmt: skip
    assert powers["aggregation-data"] == [
        {"keys": [], "buckets": [{"value": 0, "count": 1}, {"value": 64, "count": 1}]}
    ]
    assert linear["aggregation-data"] == [{"keys": [], "buckets": [{"below": 0, "count": 1}]}]


def test_printa() -> None:
    (plain,) = outputs('@a["k"] = max(9); printa(@a);')
    assert plain["aggregations"][0]["aggregation-data"] == [{"keys": ["k"], "value": 9}]
    formatted, values = outputs('@a["k"] = max(9); printa("%s: %@d\\n", @a);')
    assert formatted == {"message": "k: 9\n"}
    assert values["aggregations"][0]["aggregation-name"] == "a"


def test_the_order_of_things() -> None:
    found, status = document(
        "-n", "BEGIN { trace(1); }", "-n", "BEGIN { *(int *)0x10; }", "-n", "tick-1s { trace(2); exit(3); }",
        "-n", "END { trace(3); }",
    )  # fmt: skip
    first, error, second, last = found["probes"]
    assert status == 3
    assert (first["provider"], first["name"], first["output"]) == ("dtrace", "BEGIN", [{"value": 1}])
    assert (error["error"]["fault"], error["error"]["value"], error["error"]["action"]) == (
        "invalid address",
        "0x10",
        1,
    )
    assert (second["provider"], second["name"]) == ("profile", "tick-1s")
    assert (last["name"], last["output"]) == ("END", [{"value": 3}])
    assert first["timestamp"] < second["timestamp"] <= last["timestamp"]
    assert second["timestamp"] - first["timestamp"] == 10**9


def test_drops() -> None:
    found, _ = document("-x", "bufsize=64", "-n", 'BEGIN { trace("long"); }', "-n", "BEGIN { exit(0); }")
    assert {"drops": 1, "kind": "PRINCIPAL", "cpu": 0} in found["probes"]


def test_failed_options() -> None:
    (found,) = outputs('setopt("bufsize", "1m");')
    assert found["setopt"] == "bufsize"
    assert found["failed"]


def test_no_records() -> None:
    found, _ = document("-n", "BEGIN { x = 1; }", "--timeout", "1")
    assert found == {"probes": [], "aggregations": [], "end": {"reason": "nothing-left", "status": 0}}


@pytest.mark.parametrize("text", [r"\377\376", r"\303\244", r"\001\033[31m"])
def test_bytes_that_are_no_text(text: str) -> None:
    """What is printed is JSON, whatever it was; UTF-8 stays."""
    (found,) = outputs(f'trace("{text}");')
    assert found["value"] == {r"\377\376": r"\xff\xfe", r"\303\244": "ä", r"\001\033[31m": "\x01\x1b[31m"}[text]


def test_names_that_are_no_text() -> None:
    (found,) = outputs(r'setopt("quiet", "\377");')
    assert found["argument"] == r"\xff"


def test_quotes_in_all_places() -> None:
    found, _ = document("-n", r'BEGIN { @["a\"b", "\\"] = count(); exit(0); }')
    assert found["aggregations"][0]["aggregation-data"] == [{"keys": ['a"b', "\\"], "value": 1}]


@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
def test_a_guest(machine: str) -> None:
    """Typed arguments, stacks, symbols and the console, of the sample kernel."""
    program = """
    fbt::callout_execute:entry /!n++/ { stack(3); print(*args[0]); trace(args[0]->c_func); sym(arg0); }
    fbt::if_input:entry { @[stringof(args[0]->if_name)] = sum(args[1]->m_len); }
    fbt::if_input:entry { @where[stack(2)] = count(); }
    """
    found, status = document("-n", program, SAMPLES / f"kernel-{machine}.elf")
    assert status == 0
    console = "".join(entry["console"] for entry in found["probes"] if "console" in entry)
    assert console.startswith("kernel: booting") and "all done" in console
    (fired,) = (entry for entry in found["probes"] if entry.get("output"))
    stack, printed, function, _ = fired["output"]
    assert stack["stack-frames"][0]["symbol"].startswith(f"kernel-{machine}`callout_execute")
    assert len(stack["stack-frames"]) == 3
    assert printed["type"] == "struct callout"
    assert printed["value"].keys() == {"c_link", "c_time", "c_pending", "c_func", "c_arg"}
    assert function["value"] == printed["value"]["c_func"] or is_value(function["value"])
    bytes_of, where = found["aggregations"]
    assert [(row["keys"], row["value"]) for row in bytes_of["aggregation-data"]] == [
        (["lo0"], 755), (["em1"], 5611), (["em0"], 5817),
    ]  # fmt: skip
    assert sum(row["value"] for row in where["aggregation-data"]) == 42
    assert all(is_frame(frame) for row in where["aggregation-data"] for frame in row["keys"][0])


def test_what_would_act_on_a_terminal_is_an_escape() -> None:
    """C1 controls, DEL, and marks that turn the direction of writing; to who reads JSON it is the same text."""
    hostile = "\x7f\x9b2J\u202ea\u2066\u200f\ufeff\U000e0041\u2028"
    shown = "\u00e9\u6f22\U0001f600"  # what is seen stays as it is
    program = f'BEGIN {{ printf("%s", "{hostile}{shown}"); exit(0); }}'
    for form in ("json", "jsonl"):
        printed = CliRunner().invoke(run, ["--format", form, "-x", "strsize=1k", "-n", program]).stdout
        assert shown in printed
        assert all(letter.isprintable() for letter in printed.replace("\n", ""))
        line = next(line for line in printed.splitlines() if "output" in line)
        values = json.loads(line.rstrip(","))["output"]
        assert values[0]["message"] == hostile + shown
