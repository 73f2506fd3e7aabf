/* And nothing need be traced.
   @options: -Z -q */
nosuch:::probe { printf("never\n"); }
