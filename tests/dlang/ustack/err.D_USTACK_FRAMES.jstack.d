/* For jstack(), too. */
BEGIN { jstack(0); }
