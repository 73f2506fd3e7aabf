/* An action is no operand. */
BEGIN { trace(1 + exit(0)); }
