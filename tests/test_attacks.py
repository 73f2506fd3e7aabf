"""The attacks that kinst-rewrite withstands, and which test shows it: whoever takes a mend away sees that one fail.

Each was tried and did harm once. SECURITY.md says no more than what these, and the fuzzers of `poe fuzz`, show; both
lists are kept whole here.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.fuzz.findings import FINDINGS
from tests.fuzz.kinds import KINDS

ROOT = Path(__file__).parents[1]
Attack = tuple[str, tuple[str, ...]]  # what it was, and the tests; those in a folder of tests that is not named

ATTACKS: tuple[Attack, ...] = (
    (
        "a snapshot says that its CPU uses the fifteenth table of the MMU, and the emulator segfaults",
        (
            "runtime/test_hostile_snapshots.py::test_lies_are_told_from_what_a_guest_does",
            "runtime/test_hostile_snapshots.py::test_a_file_that_lies_is_an_error_of_one_line",
        ),
    ),
    (
        "a guest's chains of buffers name the same 120 MB, and take the host's memory and its clock",
        (
            "runtime/machine/devices/test_device_attacks.py::test_a_device_does_little_at_a_time_in_little_memory",
            "runtime/machine/devices/test_device_attacks.py::test_the_list_has_every_device_that_looks_at_the_guests_memory",
            "runtime/machine/devices/test_device_attacks.py::test_a_request_of_many_pieces_is_carried_out_to_its_end",
            "runtime/test_hostile_guests.py::test_harm",
            "runtime/test_hostile_guests.py::test_ctrl_c_ends_it",
        ),
    ),
    (
        "a function is called zfoo$(reboot), and the shell runs what completion offers",
        (
            "commands/test_hostile_completion.py::test_bash_reads_one_word_in_what_is_offered",
            "commands/test_hostile_completion.py::test_what_is_not_seen_is_not_offered",
            "commands/test_hostile_completion.py::test_tab_and_enter_run_nothing",
        ),
    ),
    (
        "a numpy.py in the current folder is imported by a command or its workers",
        (
            "commands/test_current_folder.py::test_no_command_imports_from_it",
            "commands/test_current_folder.py::test_a_path_that_has_it_is_not_handed_on",
        ),
    ),
    (
        "a D script sets cpp and cpppath for the next one, and starts a command without -w",
        ("runtime/test_options.py::test_a_script_cannot_have_the_next_one_start_a_command",),
    ),
    (
        "a gdb stub sends output without end, or refuses for ever",
        (
            "runtime/readout/test_hostile_stubs.py::test_a_monitor_that_prints_without_end_is_cut_off",
            "runtime/readout/test_hostile_stubs.py::test_replies_that_lead_nowhere_are_given_up",
            "runtime/readout/test_hostile_stubs.py::test_nothing_is_awaited_behind_the_end_of_the_command",
        ),
    ),
    (
        "an output is an input, or another output: one of them is lost",
        (
            "commands/test_files_apart.py::test_one_line_says_which_would_be_lost",
            "commands/test_files_apart.py::test_every_parameter_with_a_file_tells_which",
        ),
    ),
    (
        "an image becomes shorter while it is read, and a signal ends the process",
        (
            "targets/elf/test_shrunk_files.py::test_whoever_reads_gets_an_error_with_its_name",
            "targets/elf/test_shrunk_files.py::test_another_thread_goes_on_and_the_main_one_gets_it",
        ),
    ),
    (
        "a batch file has a number of a million digits, a key of 40 kB, or no end",
        (
            "runtime/batch/test_toml_file.py::test_one_line_says_what_is_wrong",
            "runtime/batch/test_toml_file.py::test_a_file_without_end_is_not_read_to_it",
        ),
    ),
    (
        "tracemem() and print() leave more to print than the limit of a run allows",
        (
            "runtime/clauses/test_buffers.py::test_without_a_size_there_is_never_much_to_print",
            "runtime/clauses/test_buffers.py::test_values_that_print_writes_count_though_they_are_the_same_bytes",
        ),
    ),
    (
        "a name in a page is a script",
        (
            "rewriter/test_page_policy.py::test_nothing_else_runs_or_is_fetched",
            "runtime/batch/test_page.py::test_sums_need_no_script_and_names_are_no_markup",
        ),
    ),
    (
        "a name in a table is a formula",
        (
            "runtime/consumer/test_tables.py::test_texts_are_no_formulas_if_that_is_wanted",
            "runtime/consumer/test_tables.py::test_a_table_of_a_batch_has_no_formulas_either",
        ),
    ),
    (
        "a text in JSON acts on the terminal, or turns the direction of writing",
        ("runtime/consumer/test_json_documents.py::test_what_would_act_on_a_terminal_is_an_escape",),
    ),
    (
        "a guest has a breakpoint in the last byte of its memory, whose address stands for a free row of host code",
        (
            "runtime/engine/test_breakpoint_counters.py::test_what_stands_for_a_row_of_nobody_is_no_breakpoint",
            "runtime/test_hostile_guests.py::test_harm",
        ),
    ),
    (
        "a journal of kinst-batch is forged: markup in its page, and tracebacks",
        (
            "runtime/batch/test_journal.py::test_what_nobody_of_us_has_written_is_refused",
            "runtime/batch/test_journal.py::test_depth_and_digits_are_no_tracebacks",
        ),
    ),
    (
        "an operand of .note.stapsdt has leading zeros",
        ("runtime/providers/test_operands.py::test_amd64",),
    ),
    (
        "a guest's line takes an expression of --until or --prompt for ever",
        ("runtime/input/test_expression.py::test_no_line_takes_long",),
    ),
    (
        "CTF lies: its header, its archive, its compression, a parent that it names, symbols that are not its own",
        (
            "targets/debuginfo/test_ctf_formats.py::test_what_is_damaged_is_one_line",
            "targets/debuginfo/test_ctf_formats.py::test_files_that_continue_one_another_are_read_once",
            "targets/debuginfo/test_ctf_formats.py::test_types_of_other_symbols_are_not_believed",
        ),
    ),
    (
        "a kernel's own tables are forged: kallsyms, BTF, tracepoints, system calls",
        ("fuzz/test_fuzz.py::test_what_was_found_stays_mended", "targets/test_kallsyms.py::test_damage_is_no_crash"),
    ),
    (
        "the user's cache is another's, or has links and forged answers",
        (
            "rewriter/test_inlinecall_cache.py::test_a_link_or_a_folder_of_others_is_not_believed",
            "rewriter/test_inlinecall_cache.py::test_a_file_of_another_user_is_not_read",
            "rewriter/test_inlinecall_cache.py::test_what_was_kept_has_the_shape_of_an_answer",
            "rewriter/test_inlinecall_cache.py::test_what_was_kept_may_be_nested_without_end",
            "samples/test_fetching.py::test_a_link_in_the_cache_leads_to_no_file_of_the_users",
            "samples/test_fetching.py::test_what_is_copied_from_the_cache_is_what_was_checked",
        ),
    ),
    (
        "a stranger is between us and a dask cluster",
        ("runtime/batch/test_cluster.py::test_a_cluster_is_spoken_to_by_tls_as_dask_is_configured",),
    ),
    (
        "an SVD file is entities or arrays without end, or of another kind",
        ("targets/machines/test_svd.py::test_what_is_refused",),
    ),
    (
        "a guest's names are more than a comment in the file of --learn",
        ("targets/machines/test_learned_file.py::test_names_are_quoted_and_comments_stay_one_line",),
    ),
    (
        "an argument is a traceback",
        ("runtime/test_hostile_arguments.py::test_no_argument_ends_in_a_traceback",),
    ),
)
# What the fuzzers go on with: all that a stranger's file, guest or answer can be.
FUZZED = {
    *("headers", "manifests", "dwarf", "btf", "ctf", "symbols", "kallsyms", "tracepoints", "system-calls"),
    *("modules", "trees", "input", "caches", "traffic", "pci", "virtio", "code", "programs"),
    *("breakpoints", "counted", "looked-at", "walks", "budgets", "registers", "rings", "watched"),
    *("image-files", "hex-lines", "beside", "names", "boards", "board-trees"),
    *("learned", "polls", "svd", "gdb", "snapshots", "calls", "calls-made", "coverage"),
    *("archives", "noted"),
}


@cache
def _tests(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("attack", "tests"), ATTACKS, ids=[attack for attack, _ in ATTACKS])
def test_an_attack_has_its_test(attack: str, tests: tuple[str, ...]) -> None:
    assert tests, attack
    for one in tests:
        path, _, name = one.partition("::")
        assert name in _tests(ROOT / "tests" / path), one


def test_what_strangers_make_is_fuzzed() -> None:
    assert set(KINDS) == FUZZED
    assert {kind for kind, _, _ in FINDINGS} <= FUZZED


def test_security_names_files_that_there_are() -> None:
    """And every claim in its table names where it is checked, or why it is not."""
    text = (ROOT / "SECURITY.md").read_text()
    named = set(re.findall(r"`([\w/]+/(?:\w+\.py)?)`", text)) | set(re.findall(r"`(\w+\.py)`", text))
    for one in named:
        found = list(ROOT.glob(one)) if "/" in one else list(ROOT.glob(f"targets/**/{one}"))
        assert found, one
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ") and " | no" in line]
    without = [row[0] for row in rows if not re.search(r"`[\w/]+(?:\.py|/)`", row[-1])]
    assert not without
