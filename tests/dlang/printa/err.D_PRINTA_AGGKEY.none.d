/* Aggregations that are printed together have as many keys. */
BEGIN { @a = count(); @b[1] = count(); printa("%@d", @a, @b); }
