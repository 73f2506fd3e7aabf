/* Where an argument is depends on the probe. */
/* @says: write the register that holds it, as regs[R_...] */
BEGIN { arg0 = 1; }
