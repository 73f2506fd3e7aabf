/* Keys may be left out, the value too. */
#pragma D option quiet
BEGIN { @a["k", 5, "z"] = count(); printa("%s\n", @a); printa("%s %d\n", @a); printa("row\n", @a); exit(0); }
