#!/usr/bin/env -S kinst-run -s
/*
 * hardirqs.d - interrupts of devices: how many, and the time in their handlers.
 *
 * On amd64 the local APIC's own interrupts, such as its timer's, have no handler of this kind: see trap:interrupt::.
 *
 * USAGE: kinst-run -s samples/d/linux/hardirqs.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sdt:irq::irq_handler_entry
{
	irq_entered[cpu, args[0]] = timestamp;
}

sdt:irq::irq_handler_exit
/irq_entered[cpu, args[0]]/
{
	this->ns = timestamp - irq_entered[cpu, args[0]];
	irq_entered[cpu, args[0]] = 0;
	@irqs[args[0], stringof(args[1]->name)] = count();
	@irq_ns[args[0], stringof(args[1]->name)] = sum(this->ns);
	@irq_longest[args[0], stringof(args[1]->name)] = max(this->ns);
}

END
{
	printf("%5s %-24s %8s %12s %10s\n", "IRQ", "HANDLER", "COUNT", "NS", "LONGEST");
	printa("%5d %-24s %@8d %@12d %@10d\n", @irqs, @irq_ns, @irq_longest);
}
