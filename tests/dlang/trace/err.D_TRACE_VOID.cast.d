/* A void expression has nothing to trace. */
BEGIN { trace((void)1); }
