/* printf() wants a format. */
BEGIN { printf(); }
