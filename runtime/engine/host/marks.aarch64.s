// Unicorn's callback before an instruction: (uc, address, size, state). Only addresses in the table come to Python.
//
//   x1      the instruction's address
//   x3      the state
//   x4      the table; then the callback
//   x5      its mask
//   x6      the place in the table that is looked at
//   x7      what is there

    ldp x4, x5, [x3, #state.(table, mask)]
    movz x6, #HASH.0
    movk x6, #HASH.1, lsl #16
    movk x6, #HASH.2, lsl #32
    movk x6, #HASH.3, lsl #48
    mul x6, x6, x1
    lsr x6, x6, #HASH_SHIFT
look:
    and x6, x6, x5
    ldr x7, [x4, x6, lsl #3]
    cmp x7, x1
    b.eq watched
    add x6, x6, #1
    cbnz x7, look
    ret
watched:
    ldr x4, [x3, #state.callback]
    br x4
