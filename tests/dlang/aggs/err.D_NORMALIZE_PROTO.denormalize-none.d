/* denormalize() wants an aggregation. */
BEGIN { denormalize(); }
