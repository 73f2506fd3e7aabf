/* printm() wants a size and a memref(). */
BEGIN { printm(); }
