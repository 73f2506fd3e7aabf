/* A file has a name. */
BEGIN { snapshot(); }
