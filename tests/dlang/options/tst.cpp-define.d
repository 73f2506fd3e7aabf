/* And of the command line: -D and -U, define and undef, in its order.
   @options: -x cpp -D NUMBER=5 -x define=WORD -U WORD -x undef=OTHER -D FLAG -U AGAIN -D AGAIN=7 */
#pragma D option quiet
#ifdef WORD
#error WORD was undefined
#endif
#ifndef FLAG
#error FLAG was defined
#endif
BEGIN { printf("%d %d\n", NUMBER, AGAIN); exit(0); }
