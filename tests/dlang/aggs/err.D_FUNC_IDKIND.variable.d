/* A variable does not aggregate. */
BEGIN { f = 1; @a = f(1); }
