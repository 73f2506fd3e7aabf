/* There are three policies. */
#pragma D option bufpolicy=drain
BEGIN { trace(1); }
