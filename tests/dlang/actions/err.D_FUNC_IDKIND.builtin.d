/* A builtin variable is no function. */
BEGIN { timestamp(); }
