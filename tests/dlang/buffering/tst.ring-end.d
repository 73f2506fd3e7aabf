/* And END's.
   @status: 5 */
#pragma D option quiet
#pragma D option bufsize=64
#pragma D option bufpolicy=ring
int i;
tick-10ms { printf("%d\n", i++); }
tick-10ms /i == 20/ { exit(5); }
END { printf("end %d\n", i); }
