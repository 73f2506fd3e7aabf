/* An aggregation is no key. */
BEGIN { @a = count(); @b[@a] = count(); }
