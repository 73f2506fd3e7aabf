// Unicorn's callback before each block, where instructions are counted: (uc, address, size, state). It takes all of the
// block's instructions from the budget, and calls the hook for blocks that it stands before if that has something to do.
//
//   rdi     uc
//   rsi     the block's address
//   edx     its size, and above that what is known of the block: the number of its instructions
//   rcx     the state
//   rax     the number
//   [rsp]   where the block goes on

    mov eax, edx
    sar eax, SIZE_BITS
    jle rare                                    // nothing is known, or it is one of the rare ones
    cmp qword ptr [rcx + state.(pending, is_shared)], 0
    jne rare
    mov r8, [rcx + state.blocks_state]
    mov r9, [r8 + blocks.bits]
    or r9, [r8 + blocks.(stopping, marked)]
    or r9, [r8 + blocks.covered]
    jne look
count:
    mov r9, [rsp]
    mov [rcx + state.open], r9
    mov [rcx + state.address], rsi
    mov [rcx + state.count], rax
    sub [rcx + state.budget], rax
    jl over
    ret

// -- the budget is exceeded. If something is left of it, the block is translated anew, cut short to as many instructions.

over:
    mov qword ptr [rcx + state.open], 0
    add rax, [rcx + state.budget]
    mov [rcx + state.budget], rax
    test rax, rax
    je stop
cut_short:
    mov dword ptr [rcx + state.pending], CUT
    mov r8, [rcx + state.next_flags]
    mov [r8], eax
    mov rdi, [rcx + state.cpu]
    jmp [rcx + state.leave]                     // cpu_loop_exit_noexc(cpu): it goes on here, with that block
stop:
    mov qword ptr [rcx + state.has_stopped], 1
    jmp [rcx + state.stop]                      // uc_emu_stop(uc)

// -- the hook for blocks comes first. Who looks at a block may read the time: the block before is over.

look:
    mov qword ptr [rcx + state.open], 0
    push rdi
    push rsi
    push rcx
    push rax
    push r8                                     // five pushes: calls need a multiple of 16
    mov rax, [rcx + state.blocks]
    movzx edx, dx
    mov rcx, r8
    call rax
    pop r8
    pop rax
    pop rcx
    pop rsi
    pop rdi
    cmp qword ptr [r8 + blocks.has_stopped], 0
    je has_looked
    ret                                         // the block does not run

// -- somebody else may have got the engine while code ran. What one by one would be the same block goes on with a single
// instruction at a time, which is not begun twice: the run ends before the next block that the hook is called for.

has_looked:
    cmp dword ptr [rcx + state.is_shared], 0
    je count
    cmp rax, 1
    jle count
    mov eax, 1
    cmp qword ptr [rcx + state.budget], 0
    jne cut_short
    jmp stop

// -- the rest. What is known of a block is found when it is executed for the first time, and is kept in its own code: the
// instruction that loads the size is `mov edx, imm32`.

rare:
    push rdi
    push rsi
    push rdx
    push rcx
    mov r8d, dword ptr [rcx + state.pending]
    push r8                                     // five pushes
    mov dword ptr [rcx + state.pending], 0
    cmp r8, FIRST
    jne learn
    lea r9, [rsp + 40]
    mov [rcx + state.slot], r9
learn:
    mov eax, edx
    shr eax, SIZE_BITS
    jne known
    mov rdi, [rsp + 40]
    mov r9, rsi
    mov rsi, -1                                 // all of them
    mov rdx, rcx
    xor ecx, ecx
    call [rdx + state.tally]
    test rax, rax
    js fail
    mov edx, [rsp + 16]
    cmp [r10 + tb.flags_size_count + 4], dx
    jne fail
    test edx, edx
    jne filled
    mov rcx, [rsp + 8]                          // a block of one instruction that has no size: an undefined one, or none
    and rax, [rcx + state.empty]
filled:
    test dword ptr [r10 + tb.compilation], 32767
    je whole
    or eax, IS_CUT
    or eax, IS_RARE
whole:
    test edx, edx
    je known                                    // it is `xor edx, edx` then
    test eax, eax
    jne some
    or eax, IS_RARE                             // it has none that counts, and that is known
some:
    mov r9, [rsp + 40]
search:
    dec r9
    cmp r9, [r10 + tb.code]
    jb fail
    cmp [r9], edx
    jne search
    cmp byte ptr [r9 - 1], 0xba
    jne search
    mov [r9 + 2], ax

// -- is it what was asked for? Then the hook for blocks had its turn.
//
//   rax     what is known of the block
//   r8      what it may be

known:
    pop r8
    push r8
    cmp r8, CUT
    je cut
    cmp r8, ALONE
    je left
    cmp r8, REST
    jne any
    mov rcx, [rsp + 8]
    mov rsi, [rsp + 24]
    cmp rsi, [rcx + state.rest]
    je ready
any:
    test eax, IS_CUT                            // nobody has cut it but the emulator, which has left the block before
    je fresh                                    // at an instruction that changes it, and begins that once more
left:
    push rax
    sub rsp, 8                                  // calls need a multiple of 16
    mov rcx, [rsp + 24]
    mov rsi, [rsp + 40]
    xor r10d, r10d
    mov rdi, [rcx + state.open]
    test rdi, rdi
    je closed
    mov r9, [rcx + state.address]
    mov rdx, rcx
    xor ecx, ecx
    cmp r8, ALONE
    setne cl                                    // what has changed its block counts both times, as one by one
    call [rdx + state.tally]
    mov rcx, [rsp + 24]
    xor r11d, r11d                              // how many are given back
    test r8d, r8d
    je closed
    mov r11, [rcx + state.count]
    sub r11, rax
    add [rcx + state.budget], r11
closed:
    mov qword ptr [rcx + state.open], 0
    add rsp, 8
    pop rax
    mov r8, [rsp]
    cmp r8, ALONE
    jne fresh
    test r10, r10
    je ready
    test dword ptr [r10 + tb.compilation], 32767
    jne cut                                     // what was left had been cut itself
    cmp r11, 1
    jle ready                                   // nothing is behind it
cut:
    mov rcx, [rsp + 8]
    movzx edx, word ptr [rsp + 16]
    add rdx, [rsp + 24]
    mov [rcx + state.rest], rdx
    mov dword ptr [rcx + state.pending], REST
ready:
    pop r8
    pop rcx
    pop rdx
    pop rsi
    pop rdi
    and eax, COUNT_MASK
    jmp has_looked
fresh:
    mov rcx, [rsp + 8]
    cmp dword ptr [rcx + state.is_shared], 0
    jne fail                                    // what was left is settled, and the hook for blocks had no turn
    pop r8
    pop rcx
    pop rdx
    pop rsi
    pop rdi
    and eax, COUNT_MASK
    mov r8, [rcx + state.blocks_state]
    mov r9, [r8 + blocks.bits]
    or r9, [r8 + blocks.(stopping, marked)]
    or r9, [r8 + blocks.covered]
    jne look
    jmp count
fail:
    pop r8
    pop rcx
    pop rdx
    pop rsi
    pop rdi
    mov dword ptr [rcx + state.pending], r8d
    mov qword ptr [rcx + state.has_failed], 1
    jmp [rcx + state.stop]
