/* A star takes the width, or the precision, from the arguments. */
#pragma D option quiet

BEGIN
{
	w = 6;
	printf("[%*d] [%-*d]\n", w, 42, w, 42);
	printf("[%*d]\n", -6, 42);
	printf("[%.*s] [%*.*s]\n", 2, "abcdef", w, 3, "abcdef");
	printf("[%*s]\n", 5, "abc");
	exit(0);
}
