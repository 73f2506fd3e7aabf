// Unicorn's callback for TLB misses: (uc, address, access, entry, state) -> whether there is a translation. An answer
// that was given before is given again if all that it came from is as it was: the registers that decide how addresses
// are translated, and the words of memory that the walk read. Anything else is for Python, with the row and its key
// in the state, so that it can keep its answer there.
//
//   r8      the state
//   r9      the key
//   r10     HASH
//   rax     what hashes key and registers; then the row
//   rsi     the register or word that is compared; ecx how many are left; rdx its value
//
// The stack, which begins with the arguments, since functions may change them:
//
//   rsp     state     + 8  entry     + 16  access     + 24  address     + 32  uc

    cmp qword ptr [r8 + state.is_off], 0
    jne python
    push rdi                                    // five pushes: calls need a multiple of 16
    push rsi
    push rdx
    push rcx
    push r8
    mov rsi, [r8 + state.numbers]
    mov rdx, [r8 + state.buffers]
    mov ecx, [r8 + state.count]
    call [r8 + state.read]                      // uc_reg_read_batch(uc, numbers, buffers, count)
    mov r8, [rsp]
    cmp qword ptr [r8 + state.raised], 0
    je ready
    mov rax, [r8 + state.registers]             // the first of them is that which is raised: where its value is
    cmp qword ptr [rax], 0
    jne ready
    // Where it is 0 the others read as 0, whatever they are: raise it, read again, and lower it.
    mov rdi, [rsp + 32]
    mov esi, [r8 + state.raised]
    lea rdx, [r8 + state.high]
    call [r8 + state.write]                     // uc_reg_write(uc, raised, &high)
    mov r8, [rsp]
    mov rdi, [rsp + 32]
    mov rsi, [r8 + state.numbers]
    mov rdx, [r8 + state.buffers]
    mov ecx, [r8 + state.count]
    call [r8 + state.read]
    mov r8, [rsp]
    mov rdi, [rsp + 32]
    mov esi, [r8 + state.raised]
    lea rdx, [r8 + state.low]
    call [r8 + state.write]
    mov r8, [rsp]
    mov rax, [r8 + state.registers]
    mov qword ptr [rax], 0                      // what it really is
ready:
    mov r9d, [rsp + 16]                         // UC_MEM_READ, _WRITE and _FETCH are 16, 17 and 18
    and r9d, 3
    or r9d, 4                                   // an empty row has the key 0, and a miss at the page 0 must not be that
    or r9, [rsp + 24]
    mov r10, HASH
    mov rax, r9
    lea rsi, [r8 + state.registers]
    mov ecx, [r8 + state.count]
next_register:
    imul rax, r10
    mov rdx, [rsi + register.at]
    mov rdx, [rdx]
    and rdx, [rsi + register.bits]
    mov [rsi + register.value], rdx             // Python takes them from here, which is faster than to read them
    xor rax, rdx
    add rsi, sizeof(register)
    dec ecx
    jne next_register
    imul rax, r10
    shr rax, HASH_SHIFT                         // the highest bits are those that depend on all others
    shl rax, ROW_SHIFT
    add rax, [r8 + state.table]
    mov [r8 + state.row], rax
    mov [r8 + state.key], r9
    cmp [rax + row.key], r9
    jne miss
    mov ecx, [rax + row.count]
    lea rsi, [rax + row.words]
next_word:
    mov rdx, [rsi + word.at]
    mov rdx, [rdx]
    cmp rdx, [rsi + word.value]
    jne miss
    add rsi, sizeof(word)
    dec ecx
    jne next_word
    mov rdx, [rax + row.physical]
    cmp qword ptr [r8 + state.asks], 0
    jne answer
    mov rcx, [rsp + 8]
    mov [rcx + entry.physical], rdx
    mov edx, [rax + row.permissions]
    mov [rcx + entry.permissions], edx
    mov eax, 1                                  // there is a translation
    add rsp, 40
    ret
answer:
    mov [r8 + state.answer], rdx
    xor eax, eax                                // none: what asks must not change the TLB
    add rsp, 40
    ret
miss:
    pop r8
    pop rcx
    pop rdx
    pop rsi
    pop rdi
python:
    jmp [r8 + state.callback]
