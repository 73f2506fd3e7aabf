/* normalize() wants an aggregation. */
BEGIN { normalize(); }
