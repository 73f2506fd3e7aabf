/* Options with and without a value. */
#pragma D option quiet
#pragma D option strsize=32
#pragma	D	option	bufsize=16k
  #pragma D option aggsize=64k

BEGIN
{
	s = "x";
	printf("%d\n", sizeof (s));
	exit(0);
}
