/* trunc() wants an aggregation. */
BEGIN { trunc(); }
