/* A number is no aggregation. */
BEGIN { denormalize(1); }
