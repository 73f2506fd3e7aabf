/* Headers are told the version.
   @options: -C -x version=1.6.2 */
#pragma D option quiet

#if __SUNW_D_VERSION == 0x01006002
BEGIN { printf("1.6.2\n"); exit(0); }
#else
BEGIN { printf("another\n"); exit(0); }
#endif
