/* Only a name can be called. */
BEGIN { 1(); }
