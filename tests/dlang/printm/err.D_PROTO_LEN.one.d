/* printm() wants a memref(). */
BEGIN { printm(4); }
