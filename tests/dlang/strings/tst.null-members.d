/* Strings of structs: an array at address 0 is NULL, and other members are where they are. */
#pragma D option quiet
struct t { char name[8]; char *p; int n; };
struct t *v; struct t u;
BEGIN { v = (struct t *)alloca(sizeof(struct t)); bcopy("abcdefghij", v->name, 8); printf("[%s] %d [%c]\n", v->name, strlen(v->name), v->name[7]); printf("%d %d\n", stringof(v->p) == NULL, v->p == NULL); }
BEGIN { u.name[0] = 'q'; printf("[%s]\n", u.name); }
BEGIN { v = NULL; printf("%d\n", v->n); }
BEGIN { printf("[%s]\n", v->name); }
BEGIN { trace(v->name); }
BEGIN { @[v->name] = count(); }
BEGIN { printf("%s\n", stringof(v->p)); }
ERROR { printf("E%d %x\n", arg4, arg5); }
BEGIN { exit(0); }
