/* With quiet they stand one after another. */
#pragma D option quiet

BEGIN { trace(1); trace(" "); trace((char)200); trace(" "); trace((unsigned char)200); trace(" "); trace(-1L); exit(0); }
