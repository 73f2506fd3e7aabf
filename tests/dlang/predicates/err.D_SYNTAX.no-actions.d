/* In a script a body follows. */
BEGIN
/1/
