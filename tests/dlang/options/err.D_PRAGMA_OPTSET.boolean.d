/* Yes or no. */
#pragma D option quiet=perhaps
BEGIN { trace(1); }
