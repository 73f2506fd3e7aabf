/* An action is no predicate. */
BEGIN /exit(0)/ { trace(1); }
