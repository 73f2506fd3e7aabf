// Unicorn's callback before arm64's MRS, MSR and SYS: (uc, register, instruction, state) -> whether it was handled.
// Kernels read system registers all the time, so only encodings in the table come to Python.
//
//   x2      the instruction
//   x3      the state
//   w4      its encoding, put together field by field; then w8 is its lowest field
//
//     15 14 13  11 10     7 6      3 2    0
//    +-----+------+--------+--------+------+
//    | op0 | op1  |  CRn   |  CRm   | op2  |
//    +-----+------+--------+--------+------+

    ldp w4, w5, [x2, #instruction.(op0, op1)]
    ldp w6, w7, [x2, #instruction.(crn, crm)]
    ldr w8, [x2, #instruction.op2]
    orr w4, w5, w4, lsl #3
    orr w4, w6, w4, lsl #4
    orr w4, w7, w4, lsl #4
    orr w4, w8, w4, lsl #3
    ldp x5, x6, [x3, #state.(callback, table)]
    lsr w7, w4, #3
    ldrb w6, [x6, w7, uxtw]                     // the byte of the table that has its bit
    lsr w6, w6, w8                              // op2 is the bit's number in it: three bits
    tbz w6, #0, unwanted
    br x5
unwanted:
    mov w0, wzr                                 // not handled: Unicorn does it
    ret
