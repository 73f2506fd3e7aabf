// Unicorn's callback before each block: (uc, address, size, state).
//
// First what is asked for in the first word of the state: marked blocks are looked at, and the run may end. It ends at
// the start of a block only, where the PC is exact (see `native_hooks`), and in the trampolines only between two
// iterations of a repeated string instruction, which can go on forever. Then the block is counted if a site is at its
// start; if one is further behind, the run ends.
//
//   rdi     uc
//   rsi     the block's address
//   rdx     its size: 32 bits, the upper ones are anybody's
//   rcx     the state
//   r9      the block before

    cmp qword ptr [rcx + state.(stopping, marked)], 0
    je count                                    // nothing to do, as nearly always
    mov r9, [rcx + state.last]
    mov [rcx + state.last], rsi
    mov [rcx + state.size], rdx
    mov rax, rsi
    sub rax, [rcx + state.trampolines]
    cmp rax, [rcx + state.trampolines_size]
    jb in_trampolines

// -- is it marked? Its address, and that behind its end, choose a byte each.

    cmp dword ptr [rcx + state.marked], 0
    je stopping
    mov rax, [rcx + state.marks]
    mov r8d, esi
    and r8d, MARKS_MASK
    cmp byte ptr [rax + r8], 0
    jne watched
    lea r8d, [rsi + rdx]
    and r8d, MARKS_MASK
    cmp byte ptr [rax + r8], 0
    jne watched
    cmp qword ptr [rcx + state.looks_at_next], 0
    je stopping
watched:
    push rcx
    push rdi
    push rsi                                    // three pushes: calls need a multiple of 16
    call [rcx + state.look]                     // look(uc, address, size, state)
    pop rsi
    pop rdi
    pop rcx

// -- does the run end? It may be asked for by another thread, at any time, or by what has looked.

stopping:
    mov eax, [rcx + state.stopping]
    cmp eax, NOW
    je stop
    jb again                                    // 0: it does not
    cmp qword ptr [rcx + state.is_first], 0     // when interrupts are not masked, but not before anything was executed
    je look
    mov qword ptr [rcx + state.is_first], 0
    jmp again
look:
    push rcx
    push rdi
    sub rsp, 8                                  // calls need a multiple of 16
    mov esi, [rcx + state.register]
    lea rdx, [rcx + state.value]
    call [rcx + state.read]                     // uc_reg_read(uc, register, &value)
    add rsp, 8
    pop rdi
    pop rcx
    mov rax, [rcx + state.value]
    xor rax, [rcx + state.unmasking]            // now each bit is 0 if it masks
    test [rcx + state.mask], rax
    je again                                    // all of them do
stop:
    mov qword ptr [rcx + state.has_stopped], 1
    jmp [rcx + state.stop]                      // uc_emu_stop(uc)
in_trampolines:
    cmp r9, rsi
    jne done                                    // no iteration
    cmp dword ptr [rcx + state.stopping], NOW
    je stop
    ret

// -- counting: there is a bit for each address near the sites, at one of two places.

again:                                          // functions were called: take the arguments from the state
    mov rsi, [rcx + state.last]
    mov rdx, [rcx + state.size]
count:
    mov rax, [rcx + state.covered]
    test rax, rax
    jne cover
counts:
    mov r8, [rcx + state.bits]
    test r8, r8
    je done
    mov rax, rsi
    sub rax, [rcx + state.first]
    cmp rax, [rcx + state.span]
    jb near_sites
    mov rax, rsi
    sub rax, [rcx + state.second]
    cmp rax, [rcx + state.span]
    jae done

//   rax     the block's distance from the first address; then its cell, or -1
//   rcx     what shifts are made by, of which cl is the lowest byte
//   rdx     the block's size; then how many of its addresses are left behind the site
//   r8      the bits
//   r9      those of the addresses from one on: 64 from a whole byte, shifted so that the address has the lowest
//   r10     the state
//   r11     the distance of the next address

near_sites:
    mov r10, rcx
    mov r9, rax
    shr r9, 3
    mov r9, [r8 + r9]
    mov ecx, eax
    and ecx, 7
    shr r9, cl
    test r9, r9
    jne closer                                  // a site at the start, inside, or behind the end
    cmp edx, 57                                 // at most 7 were shifted out: 57 of 64 are bits of the block
    ja closer
done:
    ret
closer:
    mov [r10 + state.size], rdx
    lea r11, [rax + 1]
    dec edx
    test r9b, 1
    mov r9, rax
    mov rax, -1                                 // no site at the start (no flag changes)
    je behind
    movabs r11, HASH                            // there is: look its row up
    imul r11, r9
    shr r11, 32
probe:
    and r11, [r10 + state.rows_mask]
    mov rcx, r11
    shl rcx, ROW_SHIFT
    add rcx, [r10 + state.rows]
    inc r11
    cmp [rcx + row.distance], r9
    jne probe
    mov eax, [rcx + row.cell]
    mov ecx, [rcx + row.lead]
    lea r11, [r9 + rcx + 1]                     // behind the site, which is as far behind the start as that says
    sub edx, ecx
    jl done                                     // the block ends before the site
behind:
    test edx, edx
    jle at_site                                 // nothing is left
more:
    mov r9, r11
    shr r9, 3
    mov r9, [r8 + r9]
    mov ecx, r11d
    and ecx, 7
    shr r9, cl
    mov ecx, 56                                 // bits that are used at a time
    cmp edx, ecx
    cmovb ecx, edx                              // or as many as are left, if these are fewer
    neg ecx
    shl r9, cl                                  // by 64 less that many, as shifts go: other bits fall out
    test r9, r9
    jne inside
    add r11, 56
    sub edx, 56
    jg more
at_site:
    test rax, rax
    js nothing
    add rax, [r10 + state.cells]
    inc qword ptr [rax]
nothing:
    ret
cover:
    push rcx
    push rdx
    push rsi
    push rdi
    sub rsp, 8                                  // calls need a multiple of 16
    mov rcx, [rcx + state.coverage]
    call rax                                    // covered(uc, address, size, coverage)
    add rsp, 8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    jmp counts
inside:
    mov rcx, r10
    mov [rcx + state.inside], rsi
    jmp stop
