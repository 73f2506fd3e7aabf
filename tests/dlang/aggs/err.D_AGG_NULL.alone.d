/* Naming an aggregation does nothing. */
BEGIN { @a = count(); @a; }
