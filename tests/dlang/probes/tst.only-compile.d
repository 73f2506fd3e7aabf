/* -e compiles and ends. @options: -e -q */
BEGIN { printf("never\n"); exit(3); }
