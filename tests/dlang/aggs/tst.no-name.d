/* @ alone is an aggregation, too: the one named _. */
#pragma D option quiet
BEGIN { @ = count(); @_ = count(); exit(0); }
