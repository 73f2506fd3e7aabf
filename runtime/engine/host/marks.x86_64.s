// Unicorn's callback before an instruction: (uc, address, size, state). Only addresses in the table come to Python.
//
//   rsi     the instruction's address
//   rcx     the state
//   rax     the place in the table that is looked at
//   r8      the table
//   r9      its mask
//   r10     what is there

    mov r8, [rcx + state.table]
    mov r9, [rcx + state.mask]
    movabs rax, HASH
    imul rax, rsi
    shr rax, HASH_SHIFT
look:
    and rax, r9
    mov r10, [r8 + rax * 8]
    cmp r10, rsi
    je watched
    add rax, 1
    test r10, r10
    jne look
    ret
watched:
    jmp [rcx + state.callback]
