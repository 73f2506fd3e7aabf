/* A list does not end with a comma. */
BEGIN, { trace(1); }
