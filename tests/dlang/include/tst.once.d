/* Include guards work as in C. */
/* @options: -C */
#pragma D option quiet
#include "guarded.h"
#include "guarded.h"

BEGIN
{
	printf("%d\n", GUARDED);
	exit(0);
}
