/* With k, m, g or t. */
#pragma D option bufsize=4x
BEGIN { trace(1); }
