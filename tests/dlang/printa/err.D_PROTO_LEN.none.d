/* printa() wants an aggregation. */
BEGIN { @a = count(); printa(); }
