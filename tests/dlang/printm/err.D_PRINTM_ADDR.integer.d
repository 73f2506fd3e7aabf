/* The second argument is what memref() gave. */
BEGIN { printm(4, 16); }
