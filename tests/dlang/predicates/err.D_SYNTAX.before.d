/* A predicate is behind the description. */
/1/ BEGIN { trace(1); }
