/* Nothing was aggregated under this name. */
BEGIN { printa(@nothing); }
