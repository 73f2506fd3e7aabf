/* quiet=no takes it back; the last says what counts. */
#pragma D option quiet
#pragma D option quiet=no
BEGIN { trace(1); exit(0); }
