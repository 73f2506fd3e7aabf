/* Where NULL comes from, and where only the empty string: who measures it knows. */
#pragma D option quiet

inline string rest[string s] = strchr(s, '=');
string g;
this string t;
self string u;

BEGIN { printf("%d ", strlen(g)); }
BEGIN { printf("%d ", strlen(this->t)); }
BEGIN { printf("%d ", strlen(substr("a", 1))); }
BEGIN { printf("%d ", strlen(json("{\"a\":\"\"}", "a"))); }
BEGIN { printf("%d ", strlen(rest["a=b"])); }
BEGIN { self->u = ""; printf("%d ", strlen(self->u)); }
BEGIN { printf("%d\n", strlen((1, g))); }
BEGIN { self->u = 0; printf("%d ", strlen(self->u)); }
BEGIN { printf("%d ", strlen(json("{}", "a"))); }
BEGIN { printf("%d ", strlen(rest["ab"])); }
BEGIN { printf("%d ", strlen(strtok("", ","))); }
BEGIN { g = 1 ? NULL : "x"; printf("%d ", strlen(g)); }
BEGIN { printf("%d ", strlen(1 ? strrchr("a", 'b') : "x")); }
BEGIN { printf("%d ", strlen((1, g))); }
BEGIN { exit(0); }
ERROR { printf("null "); }
