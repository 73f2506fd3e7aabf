/* quantize() wants a value. */
BEGIN { @a = quantize(); }
