/* It is a number. */
BEGIN { ustack("5"); }
