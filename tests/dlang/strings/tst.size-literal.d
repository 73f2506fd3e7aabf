/* A literal is as long as it is written where its address counts; as a string it has strsize characters. */
#pragma D option quiet
#pragma D option strsize=4

BEGIN
{
	p = (char *)alloca(9);
	bcopy("abcdefgh", p, 8);
	printf("%s %s %s\n", stringof(p), stringof(p + 4), "abcdefgh");
	printf("%c %d %d\n", "abcdefgh"[6], strlen("abcdefgh"), "abcdefgh" == "abcdxxxx");
	exit(0);
}
