/* It is a constant. */
BEGIN { n = 5; stack(n); }
