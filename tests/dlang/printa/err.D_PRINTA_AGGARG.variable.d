/* A variable is no aggregation. */
BEGIN { x = 1; printa("%@d", x); }
