/* There is no such option. */
#pragma D option nosuchoption
BEGIN { trace(1); }
