/* An aggregating function is only for aggregations. */
BEGIN { x = count(); }
