/* It is a constant. */
BEGIN { n = 5; ustack(5, n); }
