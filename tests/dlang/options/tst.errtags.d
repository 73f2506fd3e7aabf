/* errtags: the tag is before the message.
   @options: -x errtags
   @status: 1 */
BEGIN { trace(nothing); }
