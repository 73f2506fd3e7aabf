/* Actions that read NULL fail, whatever they print or do; what came before in the clause stays.
   @options: -w */
#pragma D option quiet
BEGIN { @a["k"] = count(); @a[strtok(NULL, ",")] = count(); }
ERROR { printf("E%d@%d ", arg4, arg2); }
BEGIN { printf("%s", self->x = strstr("abc", "z")); }
BEGIN { printf("%d %s", 1, strchr("abc", 'z')); }
BEGIN { freopen("%s", strchr("abc", 'z')); }
BEGIN { exit(0); }
