/* @options: -C -x incdir=HERE/below

   So does the option incdir. */
#pragma D option quiet

#include <inner.h>
BEGIN { printf("%d\n", INNER); exit(0); }
