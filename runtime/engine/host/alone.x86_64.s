// In front of a callback for what an instruction does: an access to a device, to a port or to a system register. There
// the time is asked for and the run may end, and the budget is only right if no instruction of the block is still to
// come. So such an instruction is executed in a block of its own: the one that has begun is left before it, as QEMU
// itself does when it counts instructions (cpu_io_recompile).
//
// Behind the code are the words of `own`. All arguments stay as they are.
//
//   rax     those words
//   r10     the counter's state
//   r11     the host's address that the block goes on at

    lea rax, [rip + words]
    mov r10, [rax + own.budget]
    mov r9, [rax + own.returns]
    xor r11d, r11d
    test r9, r9
    je asked
    mov r11, [r9]
    mov qword ptr [r9], 0                       // what a helper of the block accesses by itself does not set it anew
asked:
    cmp qword ptr [r10 + state.open], 0
    je call                                     // nothing runs: somebody else asks
    cmp qword ptr [r10 + state.count], 1
    jle call                                    // it is alone, or in the trampolines, where the rest does not count
    test r11, r11
    jne has_place
    mov r11, [r10 + state.slot]
    mov r11, [r11]
has_place:
    push rdi
    push rsi
    push rdx
    push rcx
    push r8
    push rax
    push r10                                    // seven pushes: calls need a multiple of 16
    mov rdi, [r10 + state.cpu]
    mov rsi, r11
    mov edx, 1
    call [r10 + state.restore]                  // cpu_restore_state(cpu, host's address, true)
    pop r10
    test al, al
    je back                                     // it was not called by a block's code
    mov dword ptr [r10 + state.pending], ALONE
    mov r8, [r10 + state.next_flags]
    mov dword ptr [r8], 1
    mov rdi, [r10 + state.cpu]
    sub rsp, 8
    call [r10 + state.leave]                    // cpu_loop_exit_noexc(cpu), which does not return
back:
    pop rax
    pop r8
    pop rcx
    pop rdx
    pop rsi
    pop rdi
call:
    jmp [rax + own.callback]
words:
