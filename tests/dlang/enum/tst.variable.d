/* A variable of an enumeration is an int to compute with. */
#pragma D option quiet

enum state { IDLE, BUSY, DONE };
enum state s;

BEGIN
{
	s = BUSY;
	printf("%d %d %d\n", s, s == BUSY, s != DONE);
	s++;
	printf("%d %d\n", s == DONE, s + 5);
	s = 1;
	printf("%s\n", s == BUSY ? "busy" : "other");
	exit(0);
}
