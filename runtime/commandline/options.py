"""The options of kinst-run: those of dtrace(1), with its letters, and those that describe an image and its machine."""

from pathlib import Path
from typing import Any, Final

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.option import Choice, Decorator, option, together
from kinst.rewriter.commandline.probe_completion import complete_function
from kinst.rewriter.commandline.reporting import METHOD_HELP
from kinst.rewriter.shell.file_name import FileName, OutputFile, TextWithFile
from kinst.runtime.commandline.completion import (
    PROGRAM_COMPLETERS,
    complete_d_option,
    complete_file,
    complete_machine,
)
from kinst.runtime.commandline.files import (
    file_of_disk,
    file_of_memory,
    file_of_named,
    file_of_script,
)
from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.programs.program_text import Origin
from kinst.targets.method import Method

_FILE: Final = FileName(path_type=Path, dir_okay=False)
_WRITTEN: Final = OutputFile(path_type=Path, dir_okay=False)
_D: Final = "D programs, as of dtrace(1)"
_MACHINE, _RUN = "Machine", "Run"
_FORMATS: Final = [form.value for form in Format]
END_ON_PANIC, CONTINUE_ON_PANIC = "end", "continue"
_SEED: Final = click.IntRange(0, (1 << 64) - 1)

EXAMPLES: Final = (
    Example("kinst-run kernel.elf -n 'fbt:::entry { @[probefunc] = count(); }'", "how often each function is called"),
    Example("kinst-run -lv kernel.elf -n 'fbt::vfs_read:entry'", "a probe's arguments"),
    Example("kinst-run -s script.d kernel.elf 10 name", "a script, with $1 and $2"),
    Example("kinst-run -l kernel.elf -n 'fbt::vfs_*:'", "which probes there are"),
    Example("kinst-run -s script.d kernel.elf --clock icount", "the same in every run"),
    Example(
        "kinst-run standalone.elf --read gdb:localhost:1234 -s script.d", "what a standalone image found elsewhere"
    ),
    Example("kinst-run -n 'BEGIN { trace(\"hello\"); exit(0); }'", "without an image"),
)
PROGRAMS: Final = {  # where a program comes from: metavar, what it does
    Origin.NAME: ("PROGRAM", "A program: 'fbt::f:entry /arg0/ { trace(arg0); }', or only names of probes."),
    Origin.SCRIPT: ("FILE", "The program in FILE; - is standard input. Words behind IMAGE are its $1, $2, ..."),
    Origin.FUNCTION: ("FUNC", "Enable probes of functions: [[provider:]module:]function, with or without a clause."),
    Origin.MODULE: ("MOD", "Enable probes of modules: [provider:]module."),
    Origin.PROVIDER: ("PROV", "Enable all probes of a provider."),
    Origin.IDENTIFIER: ("ID", "Enable the probe with this identifier, as -l shows it."),
}
ABSENT: Final = {  # options of dtrace(1) that are not supported, and why
    "-32": "all machines have 64 bits",
    "-a": "without anonymous tracing, BEGIN fires before the guest's first instruction",
    "-A": "without anonymous tracing, BEGIN fires before the guest's first instruction",
    "-c": "an IMAGE is run, and not a command of this system; --exec is for a program in the guest",
    "-G": "no object has to be made for sdt, whose probes are found in the IMAGE",
    "-S": "programs are not compiled to DIF",
}
SWITCHES: Final = {  # option of the command line: option of D, what it does
    "-w": ("destructive", "Permit actions that change the guest or the host: copyout, override, system, ..."),
    "-Z": ("zdefs", "Permit descriptions that match no probe."),
    "-F": ("flowindent", "Indent by function entry and return."),
    "-C": ("cpp", "Run cpp over the programs first."),
    "-H": ("cpphdrs", "Let cpp print the names of the files it includes."),
    "-q": ("quiet", "Print only what the program prints: no remarks, no progress."),
}
VALUES: Final = {
    "-b": ("bufsize", "SIZE", "Size of the trace buffer of each CPU, e.g. 4m; without it no record is dropped."),
    "-X": ("stdc", "MODE", "Which ANSI C the D compiler keeps to: a, c, s or t."),
}
REPEATED: Final = {
    "-D": ("define", "NAME[=VALUE]", "Define a macro for cpp."),
    "-U": ("undef", "NAME", "Undefine a macro for cpp."),
    "-I": ("incdir", "DIR", "Search DIR for included files."),
    "-L": ("libdir", "DIR", "Read the D libraries in DIR, its files *.d, before the programs."),
}
_BRIEF: Final = {
    "-n": "A program, 'fbt::f:entry { exit(0); }', or probes.",
    "-s": "A file with a program; ARG... are its $1, $2, ...",
    "-w": "Permit actions that change the guest or the host.",
    "-q": "Print only what the program prints.",
}
_LONG: Final = {"-q": "--quiet"}
_COMMON: Final = frozenset({"-n", "-s", "-w", "-q"})  # on the first screen of help


def parameter(origin: Origin) -> str:
    """The name of the parameter with the programs of an origin."""
    return f"program_{origin.value}"


def _letter(letter: str, name: str, text: str, **settings: Any) -> Decorator:
    """An option that dtrace(1) has with one letter."""
    long = [_LONG[letter]] if letter in _LONG else []
    is_rare, brief = letter not in _COMMON, _BRIEF.get(letter)
    return option(letter, *long, name, group=_D, is_rare=is_rare, brief=brief, help=text, **settings)


def _one_letter_each() -> Decorator:
    """The options that only set an option of D."""
    return together(
        *(
            _letter(
                f"-{origin.value}",
                parameter(origin),
                text,
                metavar=metavar,
                multiple=True,
                shell_complete=PROGRAM_COMPLETERS.get(origin),
                type=TextWithFile(file_of_script) if origin is Origin.SCRIPT else None,
            )
            for origin, (metavar, text) in PROGRAMS.items()
        ),
        option(
            "-x",
            "d_x",
            group=_D,
            metavar="OPT[=VAL]",
            multiple=True,
            shell_complete=complete_d_option,
            help="Set an option of D, e.g. strsize=1k, switchrate=10hz, aggsortrev, errtags.",
            brief="Set an option of D, e.g. strsize=1k, aggsortrev.",
        ),
        *(
            _letter(flag, f"d_{name}", text, metavar=metavar, multiple=True, shell_complete=complete_file)
            for flag, (name, metavar, text) in REPEATED.items()
        ),
        *(_letter(flag, f"d_{name}", text, metavar=metavar) for flag, (name, metavar, text) in VALUES.items()),
        *(_letter(flag, f"d_{name}", text, is_flag=True) for flag, (name, text) in SWITCHES.items()),
    )


def _refuse(_ctx: click.Context, option: click.Parameter, is_given: bool) -> None:  # noqa: FBT001 - click calls it
    """The callback of an option that exists only to say why it is not supported."""
    if is_given:
        raise click.NoSuchOption(option.opts[0])


d_options: Final = together(
    _one_letter_each(),
    option(
        "-64",
        "is_64",
        group=_D,
        is_flag=True,
        is_rare=True,
        expose_value=False,
        help="Compile for 64 bits, which all machines here have: it changes nothing.",
    ),
    option("-32", "is_32", group=_D, is_flag=True, hidden=True, expose_value=False, callback=_refuse),
    option(
        "-l",
        "is_list",
        group=_D,
        is_flag=True,
        help="List probes instead of enabling them; with -v also their arguments.",
        brief="List probes; with -v also their arguments.",
    ),
    option(
        "-e",
        "is_check",
        group=_D,
        is_flag=True,
        is_rare=True,
        help="Compile the programs, match their probes, and exit.",
    ),
    option(
        "-d",
        "is_dump",
        group=_D,
        is_flag=True,
        is_rare=True,
        help="Print the programs as they are after if, else and inline probes are expanded.",
    ),
    option(
        "-v",
        "--verbose",
        "is_verbose",
        group=_D,
        is_flag=True,
        help="Report the stability and arguments of the programs' probes, as dtrace(1) does.",
        brief="Report stability and arguments of the probes.",
    ),
)
output_options: Final = together(
    option(
        "-o",
        "--output",
        "output",
        group=shared.OUTPUT,
        type=_WRITTEN,
        metavar="FILE",
        help="Append the output to FILE instead of writing it to stdout; formats other than text and json replace "
        "FILE.",
        brief="Append the output to FILE.",
    ),
    option(
        "--format",
        "form",
        group=shared.OUTPUT,
        type=Choice(_FORMATS),
        default="text",
        show_default=True,
        help="dtrace's output; one JSON document, or JSON line by line; a table of records and aggregations (csv, "
        "parquet, arrow); a trace for https://ui.perfetto.dev; the stacks that aggregations count, folded for other "
        "tools, or as a flame graph (SVG); distributions over time as a heat map (SVG).",
        metavar="FORMAT",
        brief="text, json, csv, parquet, perfetto, flamegraph, ...",
    ),
    shared.csv_safe(),
    option(
        "--report",
        group=shared.OUTPUT,
        type=_WRITTEN,
        metavar="FILE",
        help="Beside the output, write the run as a page for a browser: plots of aggregations, hits over time, "
        "functions that were hit, records, the console.",
        brief="Write the run as a page (HTML), too.",
    ),
)
machine_options: Final = together(
    option(
        "--board",
        "--machine",
        "machine",
        group=_MACHINE,
        metavar="NAME",
        shell_complete=complete_machine,
        help="Board to run on: one that ships, or a file that describes it (./BOARD.toml); default: the one of the "
        "image's architecture.",
        brief="Board to run on: a name, or ./BOARD.toml.",
    ),
    option(
        "--board-from",
        group=_MACHINE,
        is_rare=True,
        type=_FILE,
        metavar="FILE",
        help="Print a first board file for the board that a device tree (flattened, .dtb) describes, and do no more.",
        brief="Print a board file for a device tree.",
    ),
    option(
        "--on",
        group=_MACHINE,
        metavar="COMMAND",
        help="Run under QEMU instead, at its speed and on any of its boards: COMMAND starts it, without the image, as "
        "'qemu-system-riscv64 -M sifive_u -smp 5 -m 512M'; or qemu, for the machine that fits. The word IMAGE in it "
        "stands for the image, where another option than -kernel or -bios loads it.",
        brief="Run under QEMU: a command that starts it, or qemu.",
    ),
    option("--lossless", group=_MACHINE, is_flag=True, is_rare=True, help="With --on: hits wait, and none is lost."),
    option("--cpus", group=_MACHINE, type=int, default=1, show_default=True, metavar="N", help="Number of CPUs."),
    option(
        "--memory", group=_MACHINE, metavar="SIZE", is_rare=True, help="RAM, e.g. 256m; default: what the machine has."
    ),
    option(
        "--append",
        group=_MACHINE,
        metavar="TEXT",
        help="Command line for the kernel; default: the machine's own.",
        brief="Command line for the kernel.",
    ),
    option(
        "--initrd",
        group=_MACHINE,
        type=_FILE,
        metavar="FILE",
        help="Initial file system of a Linux kernel: a cpio archive, which may be compressed.",
        brief="Initial file system of a Linux kernel (cpio).",
    ),
    option(
        "--disk",
        "disks",
        group=_MACHINE,
        is_rare=True,
        metavar="FILE[,rw|,ro]",
        type=TextWithFile(file_of_disk),
        shell_complete=complete_file,
        multiple=True,
        help="A disk (virtio; an SD card where a board has none), a raw image: what the guest writes is forgotten, "
        "or with ,rw written to FILE. Repeatable.",
        brief="A disk; what is written is kept with ,rw only.",
    ),
    option(
        "--load",
        "loads",
        group=_MACHINE,
        is_rare=True,
        multiple=True,
        metavar="[NAME=]FILE[@ADDRESS]",
        shell_complete=complete_file,
        type=TextWithFile(file_of_named),
        help="Put a file at a physical address, for example what firmware IMAGE is to start: its bytes, or the "
        "segments of an ELF file, which has addresses itself. An image has names and probes; one without headers "
        "needs a NAME for that. Repeatable; OpenSBI's fw_dynamic starts the first.",
        brief="Put a file at an address.",
    ),
    option(
        "--clock",
        group=_MACHINE,
        type=Choice([kind.value for kind in ClockKind]),
        metavar="CLOCK",
        default="host",
        show_default=True,
        help="Time of the machine: the host's, or 10 ns for each instruction executed (icount), the same in every run.",
        brief="host, or icount: the same in every run.",
    ),
    option(
        "--dtb",
        group=_MACHINE,
        is_rare=True,
        type=_FILE,
        metavar="FILE",
        help="Device tree in place of the machine's own. Memory, CPUs, command line and initrd in it are set as for "
        "that.",
    ),
    option(
        "--rng-seed",
        group=_MACHINE,
        is_rare=True,
        type=_SEED,
        metavar="N",
        help="Give the guest a source of random numbers (virtio), which follow from this number.",
    ),
    option(
        "--virtio-console",
        "has_virtio_console",
        group=_MACHINE,
        is_rare=True,
        is_flag=True,
        help="Give the guest a console (virtio, Linux' hvc0) beside its serial line; once it is used, it is typed at.",
    ),
    option(
        "--kaslr-seed",
        group=_MACHINE,
        is_rare=True,
        type=_SEED,
        metavar="N",
        help="Let a Linux kernel run at a random offset that follows from this number; default: where it was linked.",
    ),
    option(
        "--method",
        group=_MACHINE,
        is_rare=True,
        type=Choice([method.value for method in Method]),
        metavar="METHOD",
        help=METHOD_HELP,
    ),
)
console_options: Final = together(
    option(
        "--console",
        group=_RUN,
        type=_WRITTEN,
        metavar="FILE",
        help="Write the guest's console there instead of to stdout.",
        is_rare=True,
    ),
    option(
        "--input",
        group=_RUN,
        is_rare=True,
        type=_FILE,
        metavar="FILE",
        help="Type the lines of FILE, each when the guest waits for input and has printed nothing for 20 ms.",
        brief="Type the lines of FILE, each when the guest waits.",
    ),
    option(
        "--prompt",
        group=_RUN,
        is_rare=True,
        metavar="REGEX",
        help="Type each line when the console's last line matches.",
    ),
)
run_options: Final = together(
    option(
        "--call",
        group=_RUN,
        metavar="'f(1, \"text\")'",
        shell_complete=complete_function,
        help="Call one function instead of booting, and print what it returns.",
        brief="Call one function instead of booting.",
    ),
    option(
        "--timeout",
        group=_RUN,
        metavar="T",
        help="End after so much of the machine's time, e.g. 10 (seconds), 500ms, 2m.",
        brief="End after so much of its time: 10 (seconds), 500ms.",
    ),
    option(
        "--wall-timeout",
        group=_RUN,
        is_rare=True,
        metavar="T",
        help="End after so much of the host's time since the guest was started.",
    ),
    option(
        "--until",
        group=_RUN,
        metavar="REGEX",
        help="End after a line of the console that matches.",
    ),
    option(
        "--on-panic",
        group=_RUN,
        is_rare=True,
        type=Choice([END_ON_PANIC, CONTINUE_ON_PANIC]),
        default=END_ON_PANIC,
        show_default=True,
        metavar="WHAT",
        help="When the guest's kernel (Linux) has panicked and will not restart: end the run, with exit status 4, or "
        "continue, as it does for ever.",
        brief="When the kernel has panicked: end, or continue.",
    ),
    option(
        "--top",
        "is_top",
        group=_RUN,
        is_flag=True,
        help="Watch the run on a screen of the terminal: hottest functions, CPUs, tasks and the console. Without a "
        "program, the calls of all functions are counted.",
        brief="Watch the run on a screen.",
    ),
    option(
        "--read",
        group=_RUN,
        metavar="SOURCE",
        type=TextWithFile(file_of_memory),
        help="Run nothing, and read what a standalone IMAGE found where it ran: SOURCE is an ELF core (QEMU's "
        "dump-guest-memory), FILE@ADDRESS for bytes of memory (pmemsave, or what a QEMU shares while it runs), "
        "gdb:HOST:PORT, or qmp:SOCKET, a monitor of QEMU's.",
        brief="Read what a standalone IMAGE found elsewhere.",
    ),
    option(
        "--every",
        group=_RUN,
        is_rare=True,
        metavar="T",
        help="With --read of a guest that runs: read again and again, at this interval. Through gdb:... it stands "
        "still for each reading only, and else not at all.",
    ),
    option(
        "-V",
        "--version",
        "is_version",
        group=shared.HELP,
        is_flag=True,
        help="Print the versions of the tool and of D.",
    ),
)
