/* lltostr() and strtoll() in several bases. */
#pragma D option quiet

BEGIN { printf("%s %s %s %s\n", lltostr(255), lltostr(255, 16), lltostr(-1), lltostr(8, 8)); printf("%d %d %d %d\n", strtoll("42x"), strtoll("-0x10", 16), strtoll("777", 8), strtoll("z", 36)); exit(0); }
