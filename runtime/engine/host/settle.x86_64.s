// The block that has begun was left at an instruction: those that were not executed are given back. If no instruction is
// there, the block came to its end.
//
//   rdi     the state
//   rsi     the instruction's PC
//   edx     1 if it counts as executed, since it has raised an exception; else 0

    mov dword ptr [rdi + state.pending], 0      // nothing of that block goes on
    mov r10, [rdi + state.open]
    test r10, r10
    je done
    mov qword ptr [rdi + state.open], 0
    cmp qword ptr [rdi + state.count], 0
    je done                                     // an exception in place of the first instruction, or none that counts
    push rdi                                    // one push: calls need a multiple of 16
    mov ecx, edx
    or ecx, IN_SEGMENT
    mov rdx, rdi
    mov r9, [rdi + state.address]
    mov rdi, r10
    call [rdx + state.tally]
    pop rdi
    test r8d, r8d
    je done
    mov rcx, [rdi + state.count]
    sub rcx, rax
    add [rdi + state.budget], rcx
done:
    ret
