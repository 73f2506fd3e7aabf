/* trunc() takes an aggregation and a number. */
BEGIN { @a = count(); trunc(@a, 1, 2); }
