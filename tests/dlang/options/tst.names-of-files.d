/* Those with the name of a file or directory.
   @options: -x cpppath=cpp -x incdir=/tmp -x libdir=/tmp -x syslibdir=/tmp -I /tmp -L /tmp */
#pragma D option quiet
BEGIN { printf("fine\n"); exit(0); }
