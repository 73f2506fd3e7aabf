/* A predicate has a clause. */
BEGIN /1/
