// Unicorn's callback before each instruction: (uc, address, size, state). It counts, and ends the run before the
// instruction that exceeds the budget. In a trampoline only what a slot begins with is counted: the displaced
// instruction, so that it counts once wherever it runs.
//
//   x0      uc, which uc_emu_stop is called with
//   x1      the instruction's address
//   x3      the state
//   x5      how far the address is behind the start of the trampolines; then the budget

    ldp x5, x6, [x3, #state.(trampolines, trampolines_size)]
    sub x5, x1, x5
    cmp x5, x6
    b.hs count                                  // outside: below them as well, since the difference is unsigned
    ldr x6, [x3, #state.slot_mask]
    tst x5, x6
    b.ne done                                   // not the first instruction of a slot
count:
    ldr x5, [x3, #state.budget]
    subs x5, x5, #1
    b.mi stop                                   // it stays 0: Python computes from it what was executed
    str x5, [x3, #state.budget]
done:
    ret
stop:
    mov x5, #1
    str x5, [x3, #state.has_stopped]
    ldr x5, [x3, #state.stop]
    br x5
