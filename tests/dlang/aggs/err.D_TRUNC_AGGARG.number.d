/* A number is no aggregation. */
BEGIN { trunc(1); }
