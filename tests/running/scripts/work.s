	.text
	.globl	work
	.type	work, @function
work:	.cfi_startproc
	endbr64
	vpaddd	%ymm1, %ymm2, %ymm3
	lock cmpxchg16b (%rdi)
	movabs	$0x123456789abcdef0, %rax
	leaq	table(%rip), %rcx
	movslq	(%rcx,%rdi,4), %rdi
	addq	%rcx, %rdi
	jmp	*%rdi
	.p2align 4
1:	rep movsb
	ret
	.cfi_endproc
	.size	work, .-work
	.section .rodata
table:	.long	1b-table
