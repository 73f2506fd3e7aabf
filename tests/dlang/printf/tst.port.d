/* %P is a port's name, or its number; the bytes are in the network's order. */
#pragma D option quiet
BEGIN { printf("%P\n", htons(64321)); exit(0); }
