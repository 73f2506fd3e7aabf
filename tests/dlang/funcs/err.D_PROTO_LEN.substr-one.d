/* Two arguments at least. */
BEGIN { trace(substr("abc")); }
