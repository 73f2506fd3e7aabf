/* And no action's. */
BEGIN { @a = trace(1); }
