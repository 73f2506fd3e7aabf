"""dtrace's default output: columns, order, whole lines."""

from io import BytesIO

from kinst.runtime.consumer.text import TextConsumer
from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap import Enabling, Firing, TrapFrame

PROBES = {
    1: Probe(1, "dtrace", "", "", "BEGIN"),
    12: Probe(12, "fbt", "kernel", "vm_fault", "entry"),
    999999: Probe(999999, "kinst", "kernel", "a_function_with_a_name_that_is_too_long", "1024"),
}


def firing(probe: int, cpu: int = 0) -> Firing:
    frame = TrapFrame([], lambda _a, _s: 0, lambda _a, _s, _v: None, lambda _n, _v: None)
    made = Firing(frame, Enabling(probe, lambda _firing: None, lambda _firing, _index: 0, 0))
    made.cpu = cpu
    return made


def consumer(*, apart: bool = False) -> tuple[TextConsumer, BytesIO, BytesIO]:
    output, console = BytesIO(), BytesIO()
    return TextConsumer(output, console if apart else None, PROBES.get), output, console


def test_lines_are_those_of_dtrace() -> None:
    text, output, _ = consumer()
    text.begin(with_header=True)
    for probe, cpu in ((1, 0), (12, 3), (999999, 127)):
        text.fired(firing(probe, cpu))
    text.end()
    assert output.getvalue().decode() == (
        "CPU     ID                    FUNCTION:NAME\n"
        "  0      1                           :BEGIN \n"
        "  3     12                   vm_fault:entry \n"
        "127 999999 a_function_with_a_name_that_is_too_long:1024 \n"
    )


def test_the_console_never_breaks_a_line_nor_is_broken() -> None:
    text, output, _ = consumer()
    text.begin(with_header=True)
    text.console(b"one\ntw")
    text.fired(firing(12))
    text.console(b"o\nthr")
    text.flush()
    text.fired(firing(12))
    text.end()
    lines = output.getvalue().decode().splitlines()
    assert [line.strip().split(" ")[-1] for line in lines[1:]] == [
        "one",
        "vm_fault:entry",
        "two",
        "vm_fault:entry",
        "thr",
    ]


def test_without_probes_the_console_comes_as_it_is() -> None:
    text, output, _ = consumer()
    text.begin(with_header=False)
    text.console(b"=> ")
    text.flush()
    assert output.getvalue() == b"=> "
    text.end()
    assert output.getvalue() == b"=> "


def test_a_console_of_its_own() -> None:
    text, output, console = consumer(apart=True)
    text.begin(with_header=True)
    text.console(b"a\r\nb")
    text.fired(firing(12))
    text.end()
    assert console.getvalue() == b"a\r\nb"
    assert b"a" not in output.getvalue().split(b"\n")[0]
    assert output.getvalue().count(b"\n") == 2


def test_nothing_waits_for_ever() -> None:
    text, output, _ = consumer()
    text.begin(with_header=True)
    for _ in range(1 << 15):
        text.fired(firing(12))
    assert output.getvalue().count(b"\n") > 1 << 14
