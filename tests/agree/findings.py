"""Programs that printed something else by some way of their hits, made small. Each stays."""

from typing import Final

from tests.agree.program import COUNTED, Clause, Program

_COUNTED: Final = Clause(("END",), "", (r'printa("calls<%s %@d>\n", @calls)',))
FINDINGS: Final = {
    "recorded hits were lost where no site is told later": Program(
        "kernel-amd64",
        1,
        (("-q",),),
        (
            Clause(("BEGIN",), "", ("g0 = 1",)),
            Clause(("fbt::vattr_set:entry", "fbt::file_write:entry"), "arg0 == arg0", (COUNTED,)),
            _COUNTED,
        ),
    ),
    "drops were reported at other times by block": Program(
        "kernel-amd64",
        1,
        (("-q",),),
        (
            Clause(("fbt::printk:entry", "fbt::smp_wait:entry"), "", (COUNTED,)),
            Clause(("fbt::printk:entry",), "", ("self->sp = speculation()",)),
            _COUNTED,
        ),
    ),
    "a recorded site of which no register is wanted ended the run": Program(
        "kernel-amd64", 1, (("-q",),), (Clause(("kinst::kmalloc:0",), "", ("@a0 = max(arg3)",)),)
    ),
}
