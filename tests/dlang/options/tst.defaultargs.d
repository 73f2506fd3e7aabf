/* defaultargs: an argument that is not there is 0, or the empty string. */
#pragma D option quiet
#pragma D option defaultargs
BEGIN { printf("[%d] [%s]\n", $1, $$2); exit(0); }
