/* Strings of any length and variables on both sides. */
#pragma D option quiet

BEGIN
{
	s = "variable";
	printf("%s\n", 1 ? s : "c");
	printf("%s\n", 0 ? s : "constant");
	zero = 0;
	printf("[%s] [%s]\n", zero ? "" : s, s == "variable" ? "" : "no");
	exit(0);
}
