/* A string that is NULL has no text: each clause ends there, with address 0. */
#pragma D option quiet

string s;
self string unset;
string a[string];
this string t;

BEGIN { printf("[%s]\n", self->unset); }
BEGIN { trace(a["nothing"]); }
BEGIN { s = NULL; printf("%s", s); }
BEGIN { this->t = NULL; trace(this->t); }
BEGIN { printf("%s", strchr("abc", 'x')); }
BEGIN { trace(stringof((char *)NULL)); }
BEGIN { print(strstr("abc", "x")); }
BEGIN { self->unset = "set"; a["nothing"] = ""; }
BEGIN { printf("[%s] [%s]\n", self->unset, a["nothing"]); exit(0); }
ERROR { printf("%d %x\n", arg4 == DTRACEFLT_BADADDR, arg5); }
