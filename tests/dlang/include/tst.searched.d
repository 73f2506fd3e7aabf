/* @options: -C -I HERE/below

   -I says where headers are. */
#pragma D option quiet

#include <deeper.h>
BEGIN { printf("%d\n", DEEPER); exit(0); }
