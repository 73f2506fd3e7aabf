/* Only a function's value is aggregated. */
BEGIN { @a = 1; }
