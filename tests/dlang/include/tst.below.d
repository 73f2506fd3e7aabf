/* @options: -C

   A header in a folder finds those beside it. */
#pragma D option quiet

#include "below/inner.h"
BEGIN { printf("%d\n", INNER); exit(0); }
