/* A variable is no aggregation. */
BEGIN { x = 1; clear(x); }
