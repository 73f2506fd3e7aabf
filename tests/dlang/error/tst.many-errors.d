/* As many ERRORs as faults. */
#pragma D option quiet
BEGIN { trace(*(int *)1); }
BEGIN { trace(*(int *)2); }
ERROR { n++; @a[arg5] = count(); }
BEGIN { printf("%d\n", n); exit(0); }
END { printa("%d %@d\n", @a); }
