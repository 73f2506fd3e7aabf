/* A script's clause has a body. */
BEGIN
