// Called for each block that runs: (uc, address, size, state). It is counted in its row, which Python makes.
//
//   x0      uc
//   x1      the block's address
//   x2      its size
//   x3      the state
//   x6      the range, or the number of the next row
//   x7      the row

    cmp w2, #0
    cinc w2, w2, eq                             // an undefined instruction may have no size: its row has one byte
    ldr x4, [x3, #state.count]
    cbnz x4, ranges
look:
    movz x6, #HASH.0
    movk x6, #HASH.1, lsl #16
    movk x6, #HASH.2, lsl #32
    movk x6, #HASH.3, lsl #48
    mul x6, x6, x1
    lsr x6, x6, #32
    ldp x4, x5, [x3, #state.(rows, mask)]
probe:
    and x6, x6, x5
    add x7, x4, x6, lsl #ROW_SHIFT
    add x6, x6, #1
    ldp x8, x9, [x7, #row.(address, size)]
    cmp x8, x1
    b.ne other
    cmp x9, x2
    b.ne other
    ldr x8, [x7, #row.runs]
    add x8, x8, #1
    str x8, [x7, #row.runs]
    str x7, [x3, #state.last]
    ldr w8, [x7, #row.call]
    cbnz w8, call
    ret
call:
    ldp x9, x10, [x3, #state.(next, end)]
    cmp x9, x10
    b.eq full
    str w8, [x9], #4
    str x9, [x3, #state.next]
    ret
full:
    ldr x5, [x3, #state.full]
    br x5                                       // full(uc, address, size, state)
other:
    cbnz x9, probe
    ldr x5, [x3, #state.fresh]
    br x5                                       // fresh(uc, address, size, state)
ranges:
    add x6, x3, #state.ranges
next:
    ldp x7, x8, [x6, #range.(start, size)]
    sub x7, x1, x7
    cmp x7, x8
    b.lo look
    add x6, x6, #sizeof(range)
    sub x4, x4, #1
    cbnz x4, next
    str xzr, [x3, #state.last]
    ret
