/* copyoutstr() wants a string, target and size. */
BEGIN { copyoutstr("a"); }
