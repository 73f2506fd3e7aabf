/* Arguments are not set. */
BEGIN { arg0 = 1; }
