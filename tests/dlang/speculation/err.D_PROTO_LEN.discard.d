/* discard() wants a number. */
BEGIN { discard(); }
