/* A sum is no place. */
BEGIN { x = 1; (x + 1) = 2; }
