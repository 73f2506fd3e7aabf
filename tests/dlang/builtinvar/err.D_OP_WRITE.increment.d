/* In no way. */
BEGIN { pid++; }
