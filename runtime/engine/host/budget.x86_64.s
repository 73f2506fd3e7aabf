// Unicorn's callback before each instruction: (uc, address, size, state). It counts, and ends the run before the
// instruction that exceeds the budget. In a trampoline only what a slot begins with is counted: the displaced
// instruction, so that it counts once wherever it runs.
//
//   rdi     uc, which uc_emu_stop is called with
//   rsi     the instruction's address
//   rcx     the state
//   rax     how far the address is behind the start of the trampolines

    mov rax, rsi
    sub rax, [rcx + state.trampolines]
    cmp rax, [rcx + state.trampolines_size]
    jae count                                   // outside: below them as well, since the difference is unsigned
    test [rcx + state.slot_mask], rax
    jne done                                    // not the first instruction of a slot
count:
    dec qword ptr [rcx + state.budget]
    js stop
done:
    ret
stop:
    inc qword ptr [rcx + state.budget]          // it stays 0: Python computes from it what was executed
    mov qword ptr [rcx + state.has_stopped], 1
    jmp [rcx + state.stop]
