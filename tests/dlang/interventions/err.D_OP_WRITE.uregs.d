/* Registers of user mode cannot be written. */
BEGIN { uregs[0] = 1; }
