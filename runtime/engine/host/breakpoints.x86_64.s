// Unicorn's callback for exceptions: (uc, number, state). A breakpoint that is in the table is counted, batched or
// dispatched, and the CPU goes on where the table says. Everything else is passed on to Python's callback.
//
//   rdi     uc
//   esi     the number of the event
//   rdx     the state
//   r11     the address of the CPU's PC
//   rax     the PC as Unicorn has it
//   r8      the breakpoint's address, which is some bytes before that; later the record
//   r9      the row of the table
//   rcx, r10  whatever is at hand

    cmp esi, dword ptr [rdx + state.event]
    jne python
    mov r11, qword ptr [rdx + state.pc]
    mov rax, qword ptr [r11]
    mov r8, rax
    sub r8, qword ptr [rdx + state.bias]
    cmp r8, -2                                  // these two addresses stand for rows that are gone or free
    jae python
    movabs rcx, HASH
    imul rcx, r8
    shr rcx, 32
probe:
    and rcx, qword ptr [rdx + state.table_mask]
    mov r9, rcx
    shl r9, ROW_SHIFT
    add r9, qword ptr [rdx + state.table]
    cmp qword ptr [r9 + row.address], r8
    je found
    inc rcx
    cmp qword ptr [r9 + row.address], -1        // a free row ends the search; one that is gone does not
    jne probe
python:                                         // it may be the exception of an instruction in the middle of its block
    cmp qword ptr [rdx + state.settle], 0
    je settled
    push rdi
    push rsi
    push rdx                                    // three pushes: calls need a multiple of 16
    mov rdi, qword ptr [rdx + state.budget]
    mov rax, qword ptr [rdx + state.pc]
    mov rsi, qword ptr [rax]
    sub rsi, qword ptr [rdx + state.interrupt_bias]
    mov rax, qword ptr [rdx + state.settle]
    mov edx, 1
    call rax                                    // settle(budget, pc, 1)
    pop rdx
    pop rsi
    pop rdi
settled:
    jmp qword ptr [rdx + state.callback]
found:                                          // a breakpoint is the last instruction of its block
    mov rcx, qword ptr [rdx + state.open]
    mov qword ptr [rcx], 0
    mov rcx, qword ptr [rdx + state.raised]
    mov dword ptr [rcx], 0
    mov rcx, qword ptr [r9 + row.target]
    test rcx, rcx
    js batched                                  // BATCHED_BIT is the sign
    add rcx, qword ptr [rdx + state.cells]
    inc qword ptr [rcx]
go_on:
    mov rcx, qword ptr [rdx + state.credit]
    mov r10, qword ptr [r9 + row.credit]
    add qword ptr [rcx], r10
    mov rcx, qword ptr [r9 + row.following]
    mov qword ptr [r11], rcx
    ret

// -- batched: a record is written, if there is room. Until the end it is not certain that it stays: then the next one
// goes to the same place.

batched:
    add rcx, rcx
    js dispatched                               // DISPATCHED_BIT
    mov r8, qword ptr [rdx + state.next]
    cmp r8, qword ptr [rdx + state.end]
    je full
    mov qword ptr [r8 + record.pc], rax
    mov rcx, qword ptr [rdx + state.cpu]
    mov qword ptr [r8 + record.cpu], rcx
    mov rcx, qword ptr [rdx + state.credit]     // the time: the clock's word less what the budget has left
    mov rcx, qword ptr [rcx]
    imul rcx, qword ptr [rdx + state.factor]
    mov r10, qword ptr [rdx + state.clock]
    mov r10, qword ptr [r10]
    sub r10, rcx
    mov qword ptr [r8 + record.time], r10
    mov ecx, dword ptr [rdx + state.source_count]
    mov rsi, qword ptr [rdx + state.sources]    // esi is the breakpoint's event, which is read again where it is asked
    test ecx, ecx
    je copied
copy:                                           // the last register first, so that the counter is the index
    mov rax, qword ptr [rsi + rcx*8 - 8]
    mov rax, qword ptr [rax]
    mov qword ptr [r8 + rcx*8 + sizeof(record) - 8], rax
    dec ecx
    jne copy
copied:
    push rdi                                    // three pushes: calls need a multiple of 16
    push rdx
    push r9
    mov ecx, dword ptr [rdx + state.read_count]
    test ecx, ecx
    je read
    mov rsi, qword ptr [rdx + state.read_numbers]
    mov rax, qword ptr [rdx + state.read_batch]
    mov rdx, qword ptr [rdx + state.read_places]
    call rax                                    // uc_reg_read_batch(uc, numbers, places, count)
    mov rdx, qword ptr [rsp + 8]
read:
    mov rax, qword ptr [rdx + state.gettime]
    test rax, rax
    je clocked
    mov edi, MONOTONIC
    lea rsi, [rdx + state.(seconds, nanoseconds)]
    call rax                                    // clock_gettime(CLOCK_MONOTONIC, &seconds)
    mov rdx, qword ptr [rsp + 8]
    imul rcx, qword ptr [rdx + state.seconds], SECOND
    add rcx, qword ptr [rdx + state.nanoseconds]
    mov r8, qword ptr [rdx + state.next]
    add qword ptr [r8 + record.time], rcx
clocked:
    pop r9
    pop rdx
    pop rdi
    mov r8, qword ptr [rdx + state.next]
    mov rcx, qword ptr [r9 + row.target]
    shl rcx, 2
    jns recorded                                // no KEYED_BIT

// The key of the thread: a row of the table has it, for what runs on one stack.
//
//   rcx     the stack pointer, and later other words that are compared
//   r10     what identifies what runs
//   r11     the row of that table

    mov rcx, qword ptr [rdx + state.stack_pointer]
    mov rcx, qword ptr [r8 + rcx]
    mov r10, qword ptr [rdx + state.identity]
    mov r10, qword ptr [r8 + r10]
    lea r11, [rcx - 1]                          // an empty stack's pointer is in the page above it, the byte below is not
    shr r11, PAGE_SHIFT
    and r11d, KEY_ROWS_MASK
    shl r11, KEY_ROW_SHIFT
    add r11, qword ptr [rdx + state.keys]
    cmp rcx, qword ptr [r11 + thread.low]
    jbe unknown
    cmp rcx, qword ptr [r11 + thread.high]
    ja unknown
    xor r10, qword ptr [r11 + thread.identity]
    test qword ptr [rdx + state.identity_mask], r10
    jne unknown
    mov rcx, qword ptr [r11 + thread.first_at]
    mov rcx, qword ptr [rcx]
    cmp rcx, qword ptr [r11 + thread.first]
    jne unknown
    mov rcx, qword ptr [r11 + thread.second_at]
    mov rcx, qword ptr [rcx]
    cmp rcx, qword ptr [r11 + thread.second]
    jne unknown
    mov rcx, qword ptr [r11 + thread.key]
    mov qword ptr [r8 + record.key], rcx
recorded:
    mov rcx, qword ptr [rdx + state.record_size]
    add qword ptr [rdx + state.next], rcx
    mov rcx, qword ptr [rdx + state.places_size]
    add qword ptr [rdx + state.read_places], rcx
    mov r11, qword ptr [rdx + state.pc]
    jmp go_on
unknown:
    mov esi, dword ptr [rdx + state.event]      // as it was
    jmp settled
full:
    jmp qword ptr [rdx + state.full]

// -- dispatched: the registers are put into the frame, and Python's function is called. What is needed behind it is
// pushed, since a hit may change the table, also its own row.
//
//   rsp     argument     + 8  the breakpoint's address     + 16  following     + 24  credit     + 32  the PC
//   + 40    the state     + 48  uc

dispatched:
    add rcx, rcx                                // was shifted once: the address of the argument, without the two flags
    shr rcx, 2
    push rdi
    push rdx
    push rax
    push qword ptr [r9 + row.credit]
    push qword ptr [r9 + row.following]
    push r8
    push rcx
    mov rsi, qword ptr [rdx + state.general]
    mov ecx, dword ptr [rdx + state.general_count]
    mov rdi, qword ptr [rdx + state.frame]
    rep movsq                                   // rcx words from rsi to rdi
    mov ecx, dword ptr [rdx + state.frame_count]
    test ecx, ecx
    je filled
    mov rdi, qword ptr [rsp + 48]
    mov rsi, qword ptr [rdx + state.frame_numbers]
    mov rax, qword ptr [rdx + state.read_batch]
    mov rdx, qword ptr [rdx + state.frame_places]
    call rax                                    // uc_reg_read_batch(uc, numbers, places, count)
filled:
    pop rdi                                     // the argument
    pop r8                                      // the address; five are left: calls need a multiple of 16
    mov rdx, qword ptr [rsp + 24]
    mov rcx, qword ptr [rdx + state.frame_pc]
    mov qword ptr [rcx], r8
    call qword ptr [rdx + state.dispatch]       // dispatch(argument)
    pop rax                                     // following
    pop r10                                     // credit
    pop r8
    pop rdx
    pop rdi
    cmp qword ptr [rdx + state.stays], 0
    jne stay
    mov rcx, qword ptr [rdx + state.credit]
    add qword ptr [rcx], r10
    test rax, rax
    jne go
    mov rcx, qword ptr [rdx + state.frame_pc]   // where the hit has left it
    mov rax, qword ptr [rcx]
go:
    mov rcx, qword ptr [rdx + state.pc]
    mov qword ptr [rcx], rax
    ret
stay:                                           // Python has put the CPU where it goes on
    mov qword ptr [rdx + state.stays], 0
    ret
