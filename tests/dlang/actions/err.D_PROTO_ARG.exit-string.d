/* A status is a number. */
BEGIN { exit("zero"); }
