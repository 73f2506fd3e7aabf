/* Of -1, too.
   @status: 255 */
#pragma D option quiet
BEGIN { exit(-1); }
