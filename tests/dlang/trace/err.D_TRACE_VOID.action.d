/* An action has nothing to trace. */
BEGIN { trace(exit(0)); }
