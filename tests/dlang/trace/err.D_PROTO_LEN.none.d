/* trace() wants an argument. */
BEGIN { trace(); }
