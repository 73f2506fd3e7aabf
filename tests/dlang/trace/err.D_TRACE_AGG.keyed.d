/* An aggregation is not traced. */
BEGIN { @a[1] = count(); trace(@a[1]); }
