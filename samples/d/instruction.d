#!/usr/bin/env -S kinst-run -s
/*
 * instruction.d - a register each time that one instruction is about to run.
 *
 * kinst's probes are instructions: kinst::FUNCTION:OFFSET. Which offsets there are, and what stands there, shows
 *
 *	kinst-list IMAGE kinst::FUNCTION: --disassemble
 *
 * USAGE: kinst-run -s samples/d/instruction.d IMAGE FUNCTION OFFSET REGISTER --console /dev/null
 *
 *	REGISTER	R_RSP, R_RAX, ... on amd64; R_SP, R_X0, ... on arm64; R_SP, R_A0, ... on riscv64.
 *			R_PC, R_SP and R_FP are there on every machine.
 */

#pragma D option quiet

kinst::$1:$2
{
	printf("%s+%s %s 0x%x\n", probefunc, probename, $$3, regs[$3]);
	@[regs[$3]] = count();
}

END
{
	printf("\n%18s %9s\n", $$3, "COUNT");
	printa("%#18x %@9d\n", @);
}
