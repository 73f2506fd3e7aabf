/* @options: -C
   @says: broken.h", line 4

   An error in a header is told with the header's name and line. */
#include "broken.h"

BEGIN { exit(0); }
