/* %S shows a key as C would write it. */
#pragma D option quiet
BEGIN { @a["a\n"] = count(); printa("[%S]\n", @a); exit(0); }
