/* A number is no aggregation. */
BEGIN { clear(1); }
