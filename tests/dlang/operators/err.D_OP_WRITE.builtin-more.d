/* D's own variables are not assigned. */
BEGIN { timestamp = 1; }
