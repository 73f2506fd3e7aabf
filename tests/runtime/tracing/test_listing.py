"""-l, -lv and -v: what is said of probes and programs without running them."""

from click.testing import CliRunner, Result

from kinst.runtime.cli import run
from tests.samples.machines import SAMPLES

STABLE = "\t\tIdentifier Names: Stable\n\t\tData Semantics:   Stable\n\t\tDependency Class: Common\n"
PRIVATE = "\t\tIdentifier Names: Private\n\t\tData Semantics:   Private\n\t\tDependency Class: Unknown\n"


def kinst_run(*arguments: str) -> Result:
    return CliRunner().invoke(run, arguments)


def test_the_table_has_dtraces_columns() -> None:
    result = kinst_run("-l", "-n", "dtrace:::", "-n", "tick-1")
    assert result.stdout.splitlines() == [
        "   ID   PROVIDER            MODULE                          FUNCTION NAME",
        "    1     dtrace                                                     BEGIN",
        "    2     dtrace                                                     END",
        "    3     dtrace                                                     ERROR",
        "   11    profile                                                     tick-1",
    ]


def test_an_image_lists_what_it_has_by_itself() -> None:
    lines = kinst_run("-l", str(SAMPLES / "kernel-arm64.elf")).stdout.splitlines()
    providers = {line.split()[1] for line in lines[1:]}
    assert providers == {"dtrace", "profile", "fbt", "callout_execute"}


def test_arguments_of_a_function() -> None:
    result = kinst_run("-lv", "-n", "fbt::callout_execute:entry", str(SAMPLES / "kernel-amd64.elf"))
    assert "\tArgument Types\n\t\targs[0]: struct callout *\n" in result.stdout
    assert f"\tProbe Description Attributes\n{PRIVATE}" in result.stdout


def test_a_program_is_as_stable_as_the_least_of_what_it_uses() -> None:
    result = kinst_run("-ve", "-n", "BEGIN { trace(timestamp); }")
    assert (
        f"\tMinimum Probe Description Attributes\n{STABLE}\n\tMinimum Statement Attributes\n{STABLE}" in result.stdout
    )
    kernel = str(SAMPLES / "kernel-amd64.elf")
    result = kinst_run("-ve", "-n", "BEGIN { trace(`allocations); }", kernel)
    assert f"\tMinimum Statement Attributes\n{PRIVATE}" in result.stdout


def test_a_program_says_how_stable_its_own_names_are() -> None:
    said = "#pragma D attributes Private/Unstable/ISA own\ninline int own = 4;\n"
    result = kinst_run("-ve", "-n", said + "BEGIN { trace(own); }")
    levels = "\t\tIdentifier Names: Private\n\t\tData Semantics:   Unstable\n\t\tDependency Class: ISA\n"
    assert f"\tMinimum Statement Attributes\n{levels}" in result.stdout
    result = kinst_run("-ve", "-n", said + "BEGIN { trace(timestamp); }")
    assert f"\tMinimum Statement Attributes\n{STABLE}" in result.stdout
