/* droptags says which drops they are.
   @options: -x droptags */
#pragma D option quiet
#pragma D option bufsize=64
BEGIN { trace(execname); x = speculation(); x = speculation(); }
BEGIN { x = speculation(); x = speculation(); exit(0); }
