/* substr() with starts and lengths on both sides of the ends. */
#pragma D option quiet

BEGIN { s = "abcdef"; printf("[%s][%s][%s][%s][%s][%s]\n", substr(s, 2), substr(s, -2), substr(s, 1, 3), substr(s, 2, -1), substr(s, 10), substr(s, 0, 0)); exit(0); }
