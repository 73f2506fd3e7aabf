/* %@ is printa()'s. */
BEGIN { printf("%@d", 1); }
