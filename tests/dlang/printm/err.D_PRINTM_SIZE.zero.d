/* The size is positive. */
BEGIN { printm(0, memref(alloca(4), 4)); }
