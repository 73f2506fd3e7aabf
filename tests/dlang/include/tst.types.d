/* @options: -C

   A header may declare types, constants and macros; what it includes itself is found beside it. */
#pragma D option quiet

#include "structs.h"
#include "structs.h"

pair_t p;

BEGIN
{
	p.first = BLUE;
	p.second = 36;
	printf("%d %d %d\n", SUM(p), sizeof (pair_t), GREEN);
	exit(0);
}
