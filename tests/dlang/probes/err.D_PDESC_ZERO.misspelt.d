/* A probe that there is not. */
BEGINN { exit(0); }
