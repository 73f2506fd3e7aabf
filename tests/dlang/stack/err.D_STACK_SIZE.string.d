/* It is a number. */
BEGIN { stack("5"); }
