/* Auto or manual. */
#pragma D option bufresize=never
BEGIN { trace(1); }
