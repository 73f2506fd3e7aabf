/* A file has a name. */
BEGIN { snapshot(1); }
