/* Those with the name of a file or directory.
   @options: -x cpppath=cpp -x incdir=HERE -x libdir=HERE/none -x syslibdir=HERE -I HERE -L HERE/none */
#pragma D option quiet
BEGIN { printf("fine\n"); exit(0); }
