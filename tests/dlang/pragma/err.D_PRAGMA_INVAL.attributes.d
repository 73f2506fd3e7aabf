/* Attributes that are none. */
#pragma D attributes Good/Better/Best x

int x;
