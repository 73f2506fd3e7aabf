// How many instructions of a translated block count before one of them, by the table that QEMU keeps behind the block's
// code: for each instruction the difference to the one before, of the PC, of other words of the guest's state, and of
// the end of the host's code, in signed LEB128 (encode_search in its translate-all.c). In the trampolines only what a
// slot begins with counts.
//
//   rdi     where the block's code calls its hook: an address in the code
//   rsi     the PC of that instruction; if no instruction is there, all of them are before it
//   rdx     the state
//   rcx     1 if that instruction counts as well, and IN_SEGMENT if its PC counts from the segment, as the CPU's does
//   r9      the block's PC
//
// Returns: rax how many; -1 if there is no block. r8 whether the instruction is there, r10 the address of the block's
// struct. Other registers are those that any function may change.

// -- the struct is before its code, and has its code's address: the word `code` is at most that many bytes before that.

    mov r10, rdi
    and r10, -8
    sub r10, tb.code
    mov ecx, ecx
    shl rcx, 32
    mov cl, 96                                  // words that are looked at
look:
    sub r10, 8
    mov rax, [r10 + tb.code]
    cmp rax, rdi
    ja other
    mov r11, rax
    sub r11, r10
    cmp r11, 512                                // larger than the struct, as it is aligned
    ja other
    cmp [r10 + tb.pc], r9
    je found
other:
    dec cl
    jne look
    mov rax, -1
    xor r8d, r8d
    ret

//   [rsp]   1 if the instruction counts as well
//   rdi     instructions that are left
//   r9      the PC
//   r11     the next byte of the table
//   r8, r10, rcx  a number, a byte of it, and by how much it is shifted

found:
    push r10
    shr rcx, 32
    mov r11, [r10 + tb.base]
    and r11, [rdx + state.segments]
    test ecx, IN_SEGMENT
    je linear
    add rsi, r11
    and ecx, 1
linear:
    push rcx
    mov r11, rax
    add r11, [r10 + tb.code_size]
    mov rdi, [r10 + tb.flags_size_count]
    shr rdi, 48
    xor eax, eax
row:
    xor r8d, r8d
    dec rdi
    js done
    xor ecx, ecx
more:
    movzx r10d, byte ptr [r11]
    inc r11
    and r10d, 127
    shl r10, cl
    or r8, r10
    add ecx, 7
    test byte ptr [r11 - 1], 128
    jne more
    test byte ptr [r11 - 1], 64                 // the sign
    je positive
    cmp ecx, 64
    jae positive
    mov r10, -1
    shl r10, cl
    or r8, r10
positive:
    add r9, r8
    mov rcx, [rdx + state.words]
skip:                                           // the other words, of which nothing is needed
    inc r11
    test byte ptr [r11 - 1], 128
    jne skip
    dec rcx
    jne skip
    mov r8, r9
    sub r8, [rdx + state.trampolines]
    cmp r8, [rdx + state.trampolines_size]
    jae counts
    test [rdx + state.slot_mask], r8
    je counts
    cmp r9, rsi
    jne row
    jmp there
counts:
    cmp r9, rsi
    je counts_there
    inc rax
    jmp row
counts_there:
    add rax, [rsp]
there:
    mov r8d, 1
done:
    pop rcx
    pop r10
    ret
