/* setopt() takes an option and a value. */
BEGIN { setopt("quiet", "yes", "no"); }
