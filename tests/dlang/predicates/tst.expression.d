/* Expressions, division among them. */
#pragma D option quiet
BEGIN { x = 10; }
BEGIN /x / 2 == 5/ { printf("half "); }
BEGIN /x > 3 && x < 11/ { printf("between "); }
BEGIN /(x & 1) || x == 10/ { printf("either "); }
BEGIN /!(x == 10)/ { printf("not "); }
BEGIN /probename == "BEGIN"/ { printf("name "); }
BEGIN /x == 10 ^^ x == 11/ { printf("one "); }
BEGIN { printf("\n"); exit(0); }
