/* A string is text. */
#pragma D option quiet
BEGIN { s = "hello"; print(s); print(probename); exit(0); }
