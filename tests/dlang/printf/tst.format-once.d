/* The conversions of one format, with text between. */
#pragma D option quiet
BEGIN { printf("<%s|%d|%x|%c>%%<%5s|%-5d|>\n", "s", 10, 10, 'c', "r", 5); exit(0); }
