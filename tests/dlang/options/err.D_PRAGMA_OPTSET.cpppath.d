/* Nor choose which. */
#pragma D option cpppath=/bin/false
BEGIN { trace(1); }
