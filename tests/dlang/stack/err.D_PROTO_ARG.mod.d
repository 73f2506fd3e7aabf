/* A string is no address. */
BEGIN { mod("kernel"); }
