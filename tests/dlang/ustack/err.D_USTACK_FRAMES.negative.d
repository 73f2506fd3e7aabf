/* It is positive. */
BEGIN { ustack(-1); }
