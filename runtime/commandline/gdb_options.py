"""The option of kinst-run that lets a debugger in."""

from typing import Final

from kinst.rewriter.commandline.option import option, together

gdb_options: Final = together(
    option(
        "--gdb",
        group="Run",
        is_rare=True,
        metavar="[HOST:]PORT",
        help="Wait for gdb or lldb there (without HOST on 127.0.0.1; or unix:PATH) before the first instruction, as "
        "QEMU's -S -gdb does. Probes go on firing; breakpoint() of a program stops there. "
        "With --clock icount and no D program it goes backwards, too.",
        brief="Wait for gdb or lldb there, then run.",
    ),
)
