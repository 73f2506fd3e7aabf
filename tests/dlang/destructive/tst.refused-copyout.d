/* copyout() is one of them.
   @status: 1 */
#pragma D option quiet
BEGIN { copyout(alloca(1), 16, 1); exit(0); }
