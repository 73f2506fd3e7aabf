/* strstr() gives the rest of the text. */
#pragma D option quiet

BEGIN { s = "find the needle here"; printf("[%s] %d [%s]\n", strstr(s, "needle"), strstr(s, "pin") == NULL, strstr(s, "")); exit(0); }
