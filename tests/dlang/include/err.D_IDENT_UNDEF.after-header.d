/* @options: -C
   @says: line 6:

   Lines of the program are counted as they are, after headers, too. */
#include "structs.h"
BEGIN { trace(nothing); }
