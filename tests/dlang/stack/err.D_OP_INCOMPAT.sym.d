/* A symbol's name is no value of an expression. */
BEGIN { x = sym(caller); }
