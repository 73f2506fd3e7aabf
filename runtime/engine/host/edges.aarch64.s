// Unicorn's callback before each block: (uc, address, size, state). It counts how often the block came after the one
// before, in a byte that stays 255: pairs that share a byte are rare, and are told apart by no one.
//
//   x1      the block's address
//   x3      the state
//   x4      its hash; then half of that, so that a pair is not the pair in the other order
//   x5      the place of the pair
//   x6      the map, and then the pair's count

    ldp x6, x5, [x3, #state.(map, before)]
    movz x4, #HASH.0
    movk x4, #HASH.1, lsl #16
    movk x4, #HASH.2, lsl #32
    movk x4, #HASH.3, lsl #48
    mul x4, x4, x1
    lsr x4, x4, #HASH_SHIFT
    eor x5, x5, x4
    lsr x4, x4, #1
    str x4, [x3, #state.before]
    add x5, x5, x6
    ldrb w6, [x5]
    cmp w6, #255
    cinc w6, w6, ne
    strb w6, [x5]
    ret
