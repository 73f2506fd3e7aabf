/* @options: -C

   What is included may be clauses. */
#pragma D option quiet

#include "clause.h"
BEGIN { printf("here\n"); exit(0); }
