/* All descriptions match something. */
BEGIN, nosuch:::x { trace(1); }
