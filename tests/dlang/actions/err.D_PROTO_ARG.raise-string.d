/* A signal is a number. */
BEGIN { raise("KILL"); }
