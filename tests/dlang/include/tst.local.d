/* A file beside the script. */
/* @options: -C */
#pragma D option quiet
#include "answer.h"

struct answer a;

BEGIN
{
	a.value = ANSWER;
	printf("%d\n", a.value);
	exit(0);
}
