/* What is aggregated is recorded. */
BEGIN { @a = count(); speculate(1); }
