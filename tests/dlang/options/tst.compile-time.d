/* Options about debug information, libraries and linking are taken and change nothing here.
   @options: -x kdefs -x udefs -x nolibs -x lazyload -x strip -x verbose -x version=1.0 -x linkmode=dynamic -x stdc=a */
#pragma D option quiet
#pragma D option knodefs
#pragma D option unodefs
#pragma D option aggpercpu
#pragma D option pgmax=10
#pragma D option linkmode=kernel
BEGIN { printf("fine\n"); exit(0); }
