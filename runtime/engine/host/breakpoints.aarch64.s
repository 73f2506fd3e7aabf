// Unicorn's callback for exceptions: (uc, number, state). A breakpoint that is in the table is counted, batched or
// dispatched, and the CPU goes on where the table says. Everything else is passed on to Python's callback.
//
//   x0      uc
//   w1      the number of the event
//   x2      the state
//   x3      the PC as Unicorn has it
//   x4      the breakpoint's address, which is some bytes before that
//   x8      the row of the table
//   x5, x6  its target and its credit
//   x10     the record, later
//   x11     the address of the CPU's PC
//   others  whatever is at hand

    ldr x9, [x2, #state.event]
    cmp x9, w1, uxtw
    b.ne python
    ldr x11, [x2, #state.pc]
    ldr x3, [x11]
    ldr x4, [x2, #state.bias]
    sub x4, x3, x4
    cmn x4, #2                                  // -1 and -2 stand for rows that are free or gone
    b.hs python
    movz x5, #HASH.0
    movk x5, #HASH.1, lsl #16
    movk x5, #HASH.2, lsl #32
    movk x5, #HASH.3, lsl #48
    mul x5, x5, x4
    lsr x5, x5, #32
    ldp x6, x7, [x2, #state.(table, table_mask)]
probe:
    and x5, x5, x7
    add x8, x6, x5, lsl #ROW_SHIFT
    ldr x9, [x8, #row.address]
    cmp x9, x4
    b.eq found
    add x5, x5, #1
    cmn x9, #1                                  // a free row ends the search; one that is gone does not
    b.ne probe
python:
    ldr x9, [x2, #state.callback]
    br x9
found:
    ldr x5, [x2, #state.raised]
    str wzr, [x5]
    ldp x5, x6, [x8, #row.(target, credit)]
    tbnz x5, #BATCHED_BIT, batched
    ldp x7, x9, [x2, #state.(cells, credit)]
    ldr x10, [x7, x5]
    add x10, x10, #1
    str x10, [x7, x5]
go_on:                                          // x6 is the credit, and x9 the address of its word
    ldr x10, [x9]
    add x10, x10, x6
    str x10, [x9]
    ldr x10, [x8, #row.following]
    str x10, [x11]
    ret

// -- batched: a record is written, if there is room. Until the end it is not certain that it stays: then the next one
// goes to the same place.

batched:
    tbnz x5, #DISPATCHED_BIT, dispatched
    ldp x10, x11, [x2, #state.(next, end)]
    cmp x10, x11
    b.eq full
    ldr x11, [x2, #state.cpu]
    stp x3, x11, [x10, #record.(pc, cpu)]
    ldr x11, [x2, #state.credit]                // the time: the clock's word less what the budget has left
    ldr x11, [x11]
    ldp x12, x13, [x2, #state.(clock, factor)]
    mul x11, x11, x13
    ldr x12, [x12]
    sub x12, x12, x11
    str x12, [x10, #record.time]
    ldr w11, [x2, #state.source_count]
    ldr x12, [x2, #state.sources]
    add x13, x10, #sizeof(record)
    cbz w11, copied
copy:
    ldr x9, [x12], #8
    ldr x9, [x9]
    str x9, [x13], #8
    subs w11, w11, #1
    b.ne copy
copied:
    stp x29, x30, [sp, #-48]!                   // sp: x29, x30     + 16  uc     + 24  the state     + 32  the row
    stp x0, x2, [sp, #16]
    str x8, [sp, #32]
    ldr w3, [x2, #state.read_count]
    cbz w3, read
    ldr x1, [x2, #state.read_numbers]
    ldr x9, [x2, #state.read_batch]
    ldr x2, [x2, #state.read_places]
    blr x9                                      // uc_reg_read_batch(uc, numbers, places, count)
    ldr x2, [sp, #24]
read:
    ldr x9, [x2, #state.gettime]
    cbz x9, clocked
    mov w0, #MONOTONIC
    add x1, x2, #state.(seconds, nanoseconds)
    blr x9                                      // clock_gettime(CLOCK_MONOTONIC, &seconds)
    ldr x2, [sp, #24]
    ldp x9, x10, [x2, #state.(seconds, nanoseconds)]
    movz x11, #SECOND.0
    movk x11, #SECOND.1, lsl #16
    madd x9, x9, x11, x10
    ldr x10, [x2, #state.next]
    ldr x11, [x10, #record.time]
    add x11, x11, x9
    str x11, [x10, #record.time]
clocked:
    ldr x8, [sp, #32]
    ldp x0, x2, [sp, #16]
    ldp x29, x30, [sp], #48
    ldr x10, [x2, #state.next]
    ldr x9, [x8, #row.target]
    tbz x9, #KEYED_BIT, recorded

// The key of the thread: a row of the table has it, for what runs on one stack.
//
//   x11     the stack pointer, and later other words that are compared
//   x12     what identifies what runs
//   x7      the row of that table

    ldp x11, x12, [x2, #state.(stack_pointer, identity)]
    ldr x11, [x10, x11]
    ldr x12, [x10, x12]
    ldr x5, [x2, #state.keys]
    ldr x6, [x2, #state.identity_mask]
    sub x7, x11, #1                             // an empty stack's pointer is in the page above it, the byte below is not
    ubfx x7, x7, #PAGE_SHIFT, #KEY_ROWS_BITS
    add x7, x5, x7, lsl #KEY_ROW_SHIFT
    ldp x5, x9, [x7, #thread.(low, high)]
    cmp x11, x5
    b.ls unknown
    cmp x11, x9
    b.hi unknown
    ldp x5, x9, [x7, #thread.(identity, first_at)]
    eor x12, x12, x5
    tst x12, x6
    b.ne unknown
    ldr x9, [x9]
    ldp x5, x11, [x7, #thread.(first, second_at)]
    cmp x9, x5
    b.ne unknown
    ldr x11, [x11]
    ldp x5, x9, [x7, #thread.(second, key)]
    cmp x11, x5
    b.ne unknown
    str x9, [x10, #record.key]
recorded:
    ldp x11, x7, [x2, #state.(record_size, places_size)]
    add x10, x10, x11
    str x10, [x2, #state.next]
    ldr x10, [x2, #state.read_places]
    add x10, x10, x7
    str x10, [x2, #state.read_places]
    ldr x11, [x2, #state.pc]
    ldr x6, [x8, #row.credit]
    ldr x9, [x2, #state.credit]
    b go_on
unknown:
    ldr w1, [x2, #state.event]                  // as it was
    ldr x9, [x2, #state.callback]
    br x9
full:
    ldr x9, [x2, #state.full]
    br x9

// -- dispatched: the registers are put into the frame, and Python's function is called. What is needed behind it is
// kept, since a hit may change the table, also its own row.
//
//   sp      x29, x30     + 16  uc     + 24  the state     + 32  the PC     + 40  the breakpoint's address
//   + 48    credit     + 56  following     + 64  argument

dispatched:
    stp x29, x30, [sp, #-80]!
    stp x0, x2, [sp, #16]
    stp x3, x4, [sp, #32]
    ldr x7, [x8, #row.following]
    stp x6, x7, [sp, #48]
    and x5, x5, #ARGUMENT
    str x5, [sp, #64]
    ldr x9, [x2, #state.general]
    ldr w11, [x2, #state.general_count]
    ldr x10, [x2, #state.frame]
    cbz w11, rest
copy_general:
    ldr x12, [x9], #8
    str x12, [x10], #8
    subs w11, w11, #1
    b.ne copy_general
rest:
    ldr w3, [x2, #state.frame_count]
    cbz w3, filled
    ldr x1, [x2, #state.frame_numbers]
    ldr x9, [x2, #state.read_batch]
    ldr x2, [x2, #state.frame_places]
    blr x9                                      // uc_reg_read_batch(uc, numbers, places, count)
filled:
    ldr x2, [sp, #24]
    ldr x4, [sp, #40]
    ldr x9, [x2, #state.frame_pc]
    str x4, [x9]
    ldr x0, [sp, #64]
    ldr x9, [x2, #state.dispatch]
    blr x9                                      // dispatch(argument)
    ldp x0, x2, [sp, #16]
    ldr x3, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldp x29, x30, [sp], #80
    ldr x9, [x2, #state.stays]
    cbnz x9, stay
    ldr x9, [x2, #state.credit]
    ldr x10, [x9]
    add x10, x10, x6
    str x10, [x9]
    cbnz x7, go
    ldr x9, [x2, #state.frame_pc]               // where the hit has left it
    ldr x7, [x9]
go:
    ldr x9, [x2, #state.pc]
    str x7, [x9]
    ret
stay:                                           // Python has put the CPU where it goes on
    str xzr, [x2, #state.stays]
    ret
