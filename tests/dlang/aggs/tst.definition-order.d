/* Aggregations are printed in the order in which they stand in the text, not in which they were used. */
#pragma D option quiet

BEGIN /0/ { @first = count(); }
BEGIN { @second = sum(2); }
BEGIN { @first = count(); exit(0); }
