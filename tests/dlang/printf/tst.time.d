/* %Y is the local time, %T the date of a mail; the argument is in nanoseconds since 1970. */
#pragma D option quiet

BEGIN
{
	printf("[%Y]\n", (int64_t)1062612221000000000);
	printf("[%25Y]\n", (int64_t)1062612221999999999);
	printf("[%-25Y]\n", (int64_t)0);
	exit(0);
}
