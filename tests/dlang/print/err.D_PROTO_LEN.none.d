/* print() wants an argument. */
BEGIN { print(); }
