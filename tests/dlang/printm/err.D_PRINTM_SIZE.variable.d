/* The size is a constant. */
BEGIN { n = 4; printm(n, memref(alloca(4), 4)); }
