/* Only libraries depend on libraries. */
#pragma D depends_on library regs.d

BEGIN
{
	exit(0);
}
