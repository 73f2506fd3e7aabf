/* Nothing was aggregated under this name. */
BEGIN { trunc(@a, 5); }
