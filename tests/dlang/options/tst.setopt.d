/* setopt() while the program runs: from the next record on; the newline of its own record is not printed any more. */
BEGIN { trace("a"); }
BEGIN { trace("b"); setopt("quiet"); }
tick-2s { trace("c"); exit(0); }
