/* override() wants a number or a pointer. */
BEGIN { override("x"); }
