// Unicorn's callback before each block: (uc, address, size, state).
//
// First what is asked for in the first word of the state: marked blocks are looked at, and the run may end. It ends at
// the start of a block only, where the PC is exact (see `native_hooks`), and in the trampolines only between two
// iterations of a repeated string instruction, which can go on forever. Then the block is counted if a site is at its
// start; if one is further behind, the run ends.
//
//   x0      uc
//   x1      the block's address
//   x2      its size: 32 bits, the upper ones are anybody's
//   x3      the state
//   x5      the first word of the state
//   x8      the block before

    ldr x5, [x3, #state.(stopping, marked)]
    cbz x5, count                               // nothing to do, as nearly always
    ldr x8, [x3, #state.last]
    stp x1, x2, [x3, #state.(last, size)]
    ldp x6, x7, [x3, #state.(trampolines, trampolines_size)]
    sub x6, x1, x6
    cmp x6, x7
    b.lo in_trampolines

// -- is it marked? Its address, and that behind its end, choose a byte each.

    lsr x6, x5, #32                             // marked
    cbz x6, stopping
    ldr x6, [x3, #state.marks]
    and x7, x1, #MARKS_MASK
    ldrb w7, [x6, x7]
    cbnz w7, watched
    add w7, w1, w2
    and x7, x7, #MARKS_MASK
    ldrb w7, [x6, x7]
    cbnz w7, watched
    ldr x7, [x3, #state.looks_at_next]
    cbz x7, stopping
watched:
    stp x29, x30, [sp, #-32]!
    stp x0, x3, [sp, #16]
    ldr x6, [x3, #state.look]
    blr x6                                      // look(uc, address, size, state)
    ldp x0, x3, [sp, #16]
    ldp x29, x30, [sp], #32

// -- does the run end? It may be asked for by another thread, at any time, or by what has looked.

stopping:
    ldr w5, [x3, #state.stopping]
    cbz w5, again
    cmp w5, #NOW
    b.eq stop
    ldr x5, [x3, #state.is_first]               // when interrupts are not masked, but not before anything was executed
    cbz x5, look
    str xzr, [x3, #state.is_first]
    b again
look:
    stp x29, x30, [sp, #-32]!
    stp x0, x3, [sp, #16]
    ldr w1, [x3, #state.register]
    add x2, x3, #state.value
    ldr x5, [x3, #state.read]
    blr x5                                      // uc_reg_read(uc, register, &value)
    ldp x0, x3, [sp, #16]
    ldp x29, x30, [sp], #32
    ldr x5, [x3, #state.value]
    ldr x6, [x3, #state.unmasking]
    eor x5, x5, x6                              // now each bit is 0 if it masks
    ldr x6, [x3, #state.mask]
    tst x5, x6
    b.eq again                                  // all of them do
stop:
    mov x5, #1
    str x5, [x3, #state.has_stopped]
    ldr x5, [x3, #state.stop]
    br x5                                       // uc_emu_stop(uc)
in_trampolines:
    cmp x8, x1
    b.ne done                                   // no iteration
    cmp w5, #NOW
    b.eq stop
    ret

// -- counting: there is a bit for each address near the sites, at one of two places.

again:                                          // functions were called: take the arguments from the state
    ldp x1, x2, [x3, #state.(last, size)]
count:
    ldp x6, x4, [x3, #state.(covered, coverage)]
    cbnz x6, cover
counts:
    ldp x4, x5, [x3, #state.(bits, span)]
    cbz x4, done
    ldp x6, x7, [x3, #state.(first, second)]
    sub x6, x1, x6
    cmp x6, x5
    b.lo near_sites
    sub x6, x1, x7
    cmp x6, x5
    b.hs done

//   x4      the bits
//   x6      the block's distance from the first address
//   x8      the bits of the addresses from one on: 64 from a whole byte, shifted so that the address has the lowest
//   x9      the distance of the next address
//   w10     how many addresses of the block are left behind the site
//   x12     the block's cell, or -1
//   x7, x11 whatever is at hand

near_sites:
    lsr x7, x6, #3
    ldr x8, [x4, x7]
    and x7, x6, #7
    lsr x8, x8, x7
    cbnz x8, closer                             // a site at the start, inside, or behind the end
    cmp w2, #57                                 // at most 7 were shifted out: 57 of 64 are bits of the block
    b.hi closer
done:
    ret
closer:
    str x2, [x3, #state.size]
    add x9, x6, #1
    sub w10, w2, #1
    mov x12, #-1                                // no site at the start
    tbz w8, #0, behind
    movz x7, #HASH.0                            // there is: look its row up
    movk x7, #HASH.1, lsl #16
    movk x7, #HASH.2, lsl #32
    movk x7, #HASH.3, lsl #48
    mul x7, x7, x6
    lsr x7, x7, #32
    ldp x8, x9, [x3, #state.(rows, rows_mask)]
probe:
    and x7, x7, x9
    add x11, x8, x7, lsl #ROW_SHIFT
    add x7, x7, #1
    ldr x12, [x11, #row.distance]
    cmp x12, x6
    b.ne probe
    ldp w12, w7, [x11, #row.(cell, lead)]
    add x9, x6, x7                              // behind the site, which is as far behind the start as that says
    add x9, x9, #1
    subs w10, w10, w7
    b.lt done                                   // the block ends before the site
behind:
    mov w11, #56                                // bits that are used at a time
    cmp w10, #0
    b.le at_site                                // nothing is left
more:
    lsr x7, x9, #3
    ldr x8, [x4, x7]
    and x7, x9, #7
    lsr x8, x8, x7
    cmp w10, w11
    csel w7, w10, w11, lo                       // or as many as are left, if these are fewer
    neg w7, w7
    lsl x8, x8, x7                              // by 64 less that many, as shifts go: other bits fall out
    cbnz x8, inside
    add x9, x9, #56
    subs w10, w10, #56
    b.gt more
at_site:
    tbnz x12, #63, nothing
    ldr x11, [x3, #state.cells]
    ldr x10, [x11, x12]
    add x10, x10, #1
    str x10, [x11, x12]
nothing:
    ret
cover:
    stp x29, x30, [sp, #-48]!
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    mov x3, x4
    blr x6                                      // covered(uc, address, size, coverage)
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x29, x30, [sp], #48
    b counts
inside:
    str x1, [x3, #state.inside]
    b stop
