/* system() runs a command when its record is consumed; its output stands where the record does.
   @options: -w */
#pragma D option quiet
BEGIN { printf("before\n"); system("true"); printf("after\n"); exit(0); }
