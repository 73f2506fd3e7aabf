/* Text is neither true nor false. */
BEGIN /execname/ { trace(1); }
