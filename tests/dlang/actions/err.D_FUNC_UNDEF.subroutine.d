/* No subroutine has this name. */
BEGIN { x = strrev("abc"); }
