/* A number is no aggregation. */
BEGIN { printa(10); }
