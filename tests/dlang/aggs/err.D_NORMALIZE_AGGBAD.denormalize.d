/* Nothing was aggregated under this name. */
BEGIN { denormalize(@a); }
