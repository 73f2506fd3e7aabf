/* clear() wants an aggregation. */
BEGIN { clear(); }
