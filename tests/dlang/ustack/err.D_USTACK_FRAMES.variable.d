/* It is a constant. */
BEGIN { n = 5; ustack(n); }
