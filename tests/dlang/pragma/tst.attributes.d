/* Attributes and versions of one's own names. */
#pragma D option quiet
#pragma D attributes Evolving/Unstable/Common x
#pragma D binding "1.0" y

int x;
inline int y = 5;

BEGIN
{
	x = y;
	printf("%d\n", x);
	exit(0);
}
