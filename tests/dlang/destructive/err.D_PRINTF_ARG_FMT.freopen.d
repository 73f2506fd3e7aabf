/* A name is a constant, with conversions if need be. */
BEGIN { freopen(1); }
