/* Text is neither true nor false. */
BEGIN /"yes"/ { trace(1); }
