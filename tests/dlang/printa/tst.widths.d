/* Widths for keys and values. */
#pragma D option quiet
BEGIN { @a["left", 1] = sum(10); @a["r", 22] = sum(20); printa("[%-6s][%4d][%@6d]\n", @a); exit(0); }
