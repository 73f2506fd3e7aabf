/* A version that is later than all is refused, */
#pragma D option version=1.14

BEGIN
{
	exit(0);
}
