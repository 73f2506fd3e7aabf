// Unicorn's callback before arm64's MRS, MSR and SYS: (uc, register, instruction, state) -> whether it was handled.
// Kernels read system registers all the time, so only encodings in the table come to Python.
//
//   rdx     the instruction
//   rcx     the state
//   eax     its encoding, put together field by field
//
//     15 14 13  11 10     7 6      3 2    0
//    +-----+------+--------+--------+------+
//    | op0 | op1  |  CRn   |  CRm   | op2  |
//    +-----+------+--------+--------+------+

    mov eax, [rdx + instruction.op0]
    shl eax, 3
    or eax, [rdx + instruction.op1]
    shl eax, 4
    or eax, [rdx + instruction.crn]
    shl eax, 4
    or eax, [rdx + instruction.crm]
    shl eax, 3
    or eax, [rdx + instruction.op2]
    mov r8, [rcx + state.table]
    bt [r8], eax                                // of a table in memory bt takes any bit's number, not one below 32
    jc wanted
    xor eax, eax                                // not handled: Unicorn does it
    ret
wanted:
    jmp [rcx + state.callback]
