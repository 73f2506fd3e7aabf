/* A void expression has nothing to print. */
BEGIN { print((void)1); }
