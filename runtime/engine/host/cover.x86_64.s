// Called for each block that runs: (uc, address, size, state). It is counted in its row, which Python makes.
//
//   rdi     uc
//   rsi     the block's address
//   rdx     its size
//   rcx     the state
//   r8      the range, or the number of the next row
//   r9      the row

    cmp edx, 1
    adc edx, 0                                  // an undefined instruction may have no size: its row has one byte
    mov r10, [rcx + state.count]
    test r10, r10
    jne ranges
look:
    movabs r8, HASH
    imul r8, rsi
    shr r8, 32
probe:
    and r8, [rcx + state.mask]
    mov r9, r8
    shl r9, ROW_SHIFT
    add r9, [rcx + state.rows]
    inc r8
    mov rax, [r9 + row.size]
    cmp [r9 + row.address], rsi
    jne other
    cmp rax, rdx
    jne other
    inc qword ptr [r9 + row.runs]
    mov [rcx + state.last], r9
    mov eax, [r9 + row.call]
    test eax, eax
    jne call
    ret
call:
    mov r8, [rcx + state.next]
    cmp r8, [rcx + state.end]
    je full
    mov [r8], eax
    add r8, 4
    mov [rcx + state.next], r8
    ret
full:
    jmp [rcx + state.full]                      // full(uc, address, size, state)
other:
    test rax, rax
    jne probe
    jmp [rcx + state.fresh]                     // fresh(uc, address, size, state)
ranges:
    lea r8, [rcx + state.ranges]
next:
    mov rax, rsi
    sub rax, [r8 + range.start]
    cmp rax, [r8 + range.size]
    jb look
    add r8, sizeof(range)
    dec r10
    jne next
    mov qword ptr [rcx + state.last], 0
    ret
