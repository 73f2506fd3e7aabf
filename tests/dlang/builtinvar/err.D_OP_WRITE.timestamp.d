/* The clock is not set. */
BEGIN { timestamp = 0; }
