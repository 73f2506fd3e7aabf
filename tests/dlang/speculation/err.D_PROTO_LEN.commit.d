/* commit() wants a number. */
BEGIN { commit(); }
