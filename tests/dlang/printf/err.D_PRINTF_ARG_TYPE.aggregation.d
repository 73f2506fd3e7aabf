/* printa() prints aggregations. */
BEGIN { @a = count(); printf("%d", @a); }
