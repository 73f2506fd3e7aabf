/* A predicate holds an expression. */
BEGIN // { trace(1); }
