/* A predicate holds for all descriptions before it. */
#pragma D option quiet
BEGIN, END /probename == "END"/ { printf("%s\n", probename); }
BEGIN { exit(0); }
