/* Base, limit and step may be computed, from constants. */
#pragma D option quiet
enum { LOW = 2 };
inline int HIGH = 10;
BEGIN { @l = lquantize(5, LOW, HIGH, HIGH / 5); exit(0); }
