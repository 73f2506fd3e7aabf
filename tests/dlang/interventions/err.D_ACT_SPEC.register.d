/* Nor may what changes a register. */
BEGIN { speculate(1); regs[0] |= 1; }
