"""An unknown name's error says which known names are near."""

import pytest

from kinst.runtime.dlang.options import OptionError, Options
from kinst.runtime.dlang.syntax.errors import DError
from tests.runtime.dlang.check.checked import check


def message(program: str) -> str:
    with pytest.raises(DError) as caught:
        check(program)
    return caught.value.message


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("BEGIN { trace(timestmp); }", "failed to resolve timestmp: Unknown variable name; nearest timestamp, "),
        ("BEGIN { trace(probfunc); }", "; nearest probefunc, "),
        ("BEGIN { trace(arg[0]); }", "arg has not yet been declared or assigned; nearest args, "),
        ("BEGIN { total = 1; trace(totl); }", "; nearest total"),
        ("inline int limit = 3; BEGIN { trace(limt); }", "; nearest limit"),
        ("BEGIN { trace(regs[R_RPI]); }", ", R_RIP, "),
        ("BEGIN { trace(NUL); }", "; nearest NULL"),
        ("BEGIN { self->start = 1; trace(self->strat); }", "; nearest self->start"),
        ("BEGIN { this->start = 1; trace(self->start); }", "; nearest this->start"),
        ("BEGIN { this->name = 1; this->nmae++; trace(this->nam); }", "; nearest this->name, this->nmae"),
        ("BEGIN { self->sum = 1; self->smu += 1; }", "; nearest self->sum"),
        ("BEGIN { @times = count(); printa(@tmies); }", "; nearest @times"),
        ("BEGIN { trace(`curproc->p_pidd); }", "p_pidd is not a member of struct proc; nearest p_pid"),
        ("BEGIN { trace(`curproc->u_chr); }", "; nearest u_char"),
        ("BEGIN { trace(offsetof(struct proc, p_nam)); }", "; nearest p_name"),
        ("BEGIN { prinf(1); }", "undefined function name: prinf; nearest printf, print"),
        ("BEGIN { x = strlne(execname); }", "undefined function name: strlne; nearest strlen"),
        ("BEGIN { @ = quantise(1); }", "; nearest quantize"),
        ("BEGIN { trace(`curpoc); }", "No symbol table entry for this name; nearest curproc"),
        ("BEGIN { trace(kernle`curproc); }", "No module kernle; nearest kernel`curproc"),
        ("#pragma D option quite\nBEGIN {}", "failed to set option 'quite': Invalid option name; nearest quiet"),
        ("#pragma D optoin quiet\nBEGIN {}", "invalid D pragma: optoin; nearest option"),
    ],
)
def test_what_was_perhaps_meant(program: str, expected: str) -> None:
    assert expected in message(program) + ", "


@pytest.mark.parametrize("program", ["BEGIN { trace(xyzzy); }", "BEGIN { xyzzy(); }", "BEGIN { trace(self->q); }"])
def test_nothing_is_near(program: str) -> None:
    assert "nearest" not in message(program)


def test_hidden_variables_are_not_named() -> None:
    assert "%" not in message("BEGIN { if (1) { x = 1; } trace(this->condition_1); }")


def test_of_the_command_line() -> None:
    with pytest.raises(OptionError) as caught:
        Options().set("bufsiz", "4k")
    assert caught.value.why == "Invalid option name; nearest bufsize, bufresize"
