"""An instruction that faults and begins again is one hit; one that is executed twice is two."""

from kinst.runtime.userspace.restarts import Restarts

TASK, OTHER, AT, STACK = 1, 2, 0x401000, 0x7FFF_0000
REGISTERS = (1, 2, AT)


def test_a_fault_of_data_begins_the_instruction_again() -> None:
    restarts = Restarts()
    restarts.begin(TASK, AT, REGISTERS)
    restarts.faulted(AT, STACK)
    restarts.begin(OTHER, AT, REGISTERS)  # meanwhile, another task
    assert not restarts.is_again(OTHER, AT, REGISTERS)
    assert restarts.is_again(TASK, AT, REGISTERS)
    assert not restarts.is_again(TASK, AT, REGISTERS)


def test_what_ran_on_was_executed() -> None:
    restarts = Restarts()
    restarts.begin(TASK, AT, REGISTERS)
    assert not restarts.is_again(TASK, AT, REGISTERS)  # a loop
    restarts.faulted(AT + 4, STACK)
    assert not restarts.is_again(TASK, AT, REGISTERS)
    restarts.begin(TASK, AT, REGISTERS)
    restarts.faulted(AT, AT)  # of its own page, before it was begun
    assert not restarts.is_again(TASK, AT, REGISTERS)
    restarts.begin(TASK, AT, REGISTERS)
    restarts.faulted(AT, STACK)
    assert not restarts.is_again(TASK, AT, (5, 2, AT))  # a handler of signals jumped there
