/* What is aggregated is recorded. */
BEGIN { @a = count(); commit(1); }
