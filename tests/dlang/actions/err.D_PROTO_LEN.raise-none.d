/* raise() wants a signal. */
BEGIN { raise(); }
