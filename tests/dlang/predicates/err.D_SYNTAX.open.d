/* A predicate ends. */
BEGIN /1 { trace(1); }
