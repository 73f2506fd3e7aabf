/* Without a process that is traced there is no $target, as text neither. */
BEGIN { trace($$target); }
