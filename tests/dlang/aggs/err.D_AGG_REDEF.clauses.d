/* In all clauses. */
BEGIN { @a[1] = min(1); } END { @a[1] = max(1); }
