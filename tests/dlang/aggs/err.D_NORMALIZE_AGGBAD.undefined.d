/* Nothing was aggregated under this name. */
BEGIN { normalize(@a, 5); }
