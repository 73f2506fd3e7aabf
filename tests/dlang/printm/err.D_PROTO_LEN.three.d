/* printm() takes no third argument. */
BEGIN { printm(4, memref(alloca(4), 4), 4); }
