/* A number is no aggregation. */
BEGIN { normalize(1, 5); }
