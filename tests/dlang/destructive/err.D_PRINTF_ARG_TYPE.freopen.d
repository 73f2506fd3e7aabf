/* And of the right type. */
BEGIN { freopen("/tmp/%d", "x"); }
