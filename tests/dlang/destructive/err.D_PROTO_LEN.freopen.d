/* freopen() wants a name. */
BEGIN { freopen(); }
