/* bcopy() returns nothing. */
BEGIN { trace(bcopy("abc", alloca(3), 3)); }
