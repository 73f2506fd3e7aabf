/* An aggregating function alone does nothing. */
BEGIN { quantize(10); }
