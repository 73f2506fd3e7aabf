/* All that follow the format are aggregations. */
BEGIN { @a = count(); printa("%@d", @a, 1); }
