/* An action has no value that a variable could take. */
BEGIN { x = trace(1); }
