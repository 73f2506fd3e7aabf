/* Text in a struct's array of characters. */
#pragma D option quiet

struct s { int n; char name[6]; } v;

BEGIN { v.name[0] = 'a'; v.name[1] = 'b'; printf("[%s] %d [%s]\n", v.name, strlen(stringof(v.name)), strjoin(stringof(v.name), "!")); exit(0); }
