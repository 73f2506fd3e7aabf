/* The last bucket ends at 2 to the 64th. */
BEGIN { @a = llquantize(1, 2, 0, 63, 2); }
