/* Nothing was aggregated under this name. */
BEGIN { clear(@a); }
