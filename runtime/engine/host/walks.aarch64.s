// Unicorn's callback for TLB misses: (uc, address, access, entry, state) -> whether there is a translation. An answer
// that was given before is given again if all that it came from is as it was: the registers that decide how addresses
// are translated, and the words of memory that the walk read. Anything else is for Python, with the row and its key
// in the state, so that it can keep its answer there.
//
//   x4      the state
//   x1      the key
//   x10     HASH
//   x5      what hashes key and registers; then the row
//   x6      the register or word that is compared; w7 how many are left; x8 its value
//
// The stack, which has the arguments, since functions may change them:
//
//   sp      x29, x30     + 16  uc     + 24  address     + 32  access     + 40  entry     + 48  state

    ldr x5, [x4, #state.is_off]
    cbnz x5, python
    stp x29, x30, [sp, #-64]!
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    str x4, [sp, #48]
    ldp x1, x2, [x4, #state.(numbers, buffers)]
    ldr w3, [x4, #state.count]
    ldr x5, [x4, #state.read]
    blr x5                                      // uc_reg_read_batch(uc, numbers, buffers, count)
    ldr x4, [sp, #48]
    ldr x1, [x4, #state.raised]
    cbz x1, ready
    ldr x2, [x4, #state.registers]              // the first of them is that which is raised: where its value is
    ldr x2, [x2]
    cbnz x2, ready
    // Where it is 0 the others read as 0, whatever they are: raise it, read again, and lower it.
    ldr x0, [sp, #16]
    add x2, x4, #state.high
    ldr x5, [x4, #state.write]
    blr x5                                      // uc_reg_write(uc, raised, &high)
    ldr x4, [sp, #48]
    ldr x0, [sp, #16]
    ldp x1, x2, [x4, #state.(numbers, buffers)]
    ldr w3, [x4, #state.count]
    ldr x5, [x4, #state.read]
    blr x5
    ldr x4, [sp, #48]
    ldr x0, [sp, #16]
    ldr x1, [x4, #state.raised]
    add x2, x4, #state.low
    ldr x5, [x4, #state.write]
    blr x5
    ldr x4, [sp, #48]
    ldr x2, [x4, #state.registers]
    str xzr, [x2]                               // what it really is
ready:
    ldp x1, x2, [sp, #24]                       // address and access: UC_MEM_READ, _WRITE, _FETCH are 16, 17, 18
    and x2, x2, #3
    orr x1, x1, x2
    orr x1, x1, #4                              // an empty row has the key 0, and a miss at the page 0 must not be that
    movz x10, #HASH.0
    movk x10, #HASH.1, lsl #16
    movk x10, #HASH.2, lsl #32
    movk x10, #HASH.3, lsl #48
    mov x5, x1
    add x6, x4, #state.registers
    ldr w7, [x4, #state.count]
next_register:
    mul x5, x5, x10
    ldp x8, x9, [x6, #register.(at, bits)]
    ldr x8, [x8]
    and x8, x8, x9
    str x8, [x6, #register.value]               // Python takes them from here, which is faster than to read them
    eor x5, x5, x8
    add x6, x6, #sizeof(register)
    subs w7, w7, #1
    b.ne next_register
    mul x5, x5, x10
    lsr x5, x5, #HASH_SHIFT                     // the highest bits are those that depend on all others
    ldr x6, [x4, #state.table]
    add x5, x6, x5, lsl #ROW_SHIFT
    stp x5, x1, [x4, #state.(row, key)]
    ldr x6, [x5, #row.key]
    cmp x6, x1
    b.ne miss
    ldr w7, [x5, #row.count]
    add x6, x5, #row.words
next_word:
    ldp x8, x9, [x6], #sizeof(word)             // word.(at, value), and on to the next
    ldr x8, [x8]
    cmp x8, x9
    b.ne miss
    subs w7, w7, #1
    b.ne next_word
    ldr x6, [x5, #row.physical]
    ldr x7, [x4, #state.asks]
    cbnz x7, answer
    ldr x3, [sp, #40]
    str x6, [x3, #entry.physical]
    ldr w6, [x5, #row.permissions]
    str w6, [x3, #entry.permissions]
    mov w0, #1                                  // there is a translation
    ldp x29, x30, [sp], #64
    ret
answer:
    str x6, [x4, #state.answer]
    mov w0, #0                                  // none: what asks must not change the TLB
    ldp x29, x30, [sp], #64
    ret
miss:
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldr x4, [sp, #48]
    ldp x29, x30, [sp], #64
python:
    ldr x5, [x4, #state.callback]
    br x5
