/* Functions of other types.
   @image: kernel */
fbt:::entry { trace(args[0]); }
