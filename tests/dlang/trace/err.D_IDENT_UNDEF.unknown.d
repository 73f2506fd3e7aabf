/* Nothing is traced that nobody knows. */
BEGIN { trace(nothing); }
