/* A description in a script has a clause. */
BEGIN
