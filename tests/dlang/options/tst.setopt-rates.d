/* Rates, too. */
#pragma D option quiet
BEGIN { setopt("switchrate", "50hz"); setopt("aggrate", "100ms"); setopt("stackindent", "4"); setopt("rawbytes", "no"); }
BEGIN { setopt("flowindent", "no"); setopt("aggzoom"); setopt("agghist", "no"); setopt("aggpack", "no"); exit(0); }
