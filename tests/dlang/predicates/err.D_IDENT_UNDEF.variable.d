/* A predicate reads only what is known. */
BEGIN /never/ { trace(1); }
